"""A store of window arrays, from which batches are gathered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from gdi.data.base import Draws, SavedFiles
from gdi.data.slices import ages, take_slices
from gdi.types import Array, Batch, State, Window, column_axis, gather_columns, window_from


class Store(Protocol):
    """The arrays behind a replay's numbers. It lives where batches are trained."""

    def __len__(self) -> int:
        """Windows in it."""
        ...

    @property
    def num_bytes(self) -> int: ...

    def put(self, key: int, window: Window) -> None: ...

    def gather(self, draws: Draws, number: int, rank: int = 0, size: int = 1) -> Batch | None:
        """One batch as arrays, or one learner's part of it; None if that part is empty."""
        ...

    def keep(self, keys: Iterable[int]) -> None:
        """Drop all windows but these."""
        ...

    @property
    def copies(self) -> bool:
        """Whether ``put`` copies the arrays, so that nothing else must hold them."""
        ...

    def state_dict(self) -> State:
        """Return the arrays that are part of a checkpoint's state."""
        ...

    def load_state_dict(self, state: State) -> None: ...

    def save(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        """Write the arrays that are files of their own into a new checkpoint's folder.

        A file that is already in the checkpoint ``before`` is linked.
        """
        ...

    def load(self, saved: SavedFiles) -> bool:
        """Read the arrays that are files; return False if they are missing or of another layout."""
        ...


class WindowStore:
    """Windows by key, as the actor wrote them; draws are whole columns, or slices of ``slice_steps`` steps."""

    copies = False

    def __init__(self, slice_steps: int = 0) -> None:
        self._slice_steps = slice_steps
        self._windows: dict[int, Window] = {}

    def __len__(self) -> int:
        return len(self._windows)

    @property
    def num_bytes(self) -> int:
        return sum(window.num_bytes for window in self._windows.values())

    def put(self, key: int, window: Window) -> None:
        self._windows[key] = window

    def gather(self, draws: Draws, number: int, rank: int = 0, size: int = 1) -> Batch | None:
        parts = draws.batch(number, rank, size)
        if not parts:
            return None
        if not self._slice_steps:
            return gather_columns([(self._windows[key], columns) for key, columns, _ in parts])
        return join_columns([self._slices(*part) for part in parts])

    def _slices(self, key: int, columns: Array, starts: Array) -> Batch:
        window = self._windows[key]
        context = len(window.obs) - len(window.episode_start)
        arrays = window.arrays()
        state = arrays.pop("state")[columns]
        age = ages(window.episode_start, context)
        return window_from({**take_slices(arrays, age, columns, starts, self._slice_steps, context), "state": state})

    def keep(self, keys: Iterable[int]) -> None:
        self._windows = {key: self._windows[key] for key in keys}

    def state_dict(self) -> State:
        return {"windows": {str(key): {"arrays": window.arrays()} for key, window in self._windows.items()}}

    def load_state_dict(self, state: State) -> None:
        by_key: Mapping[str, State] = state["windows"]
        self._windows = {int(key): window_from(by_key[key]["arrays"]) for key in sorted(by_key, key=int)}

    def save(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        return SavedFiles(folder, {})

    def load(self, saved: SavedFiles) -> bool:
        return True


def join_columns(batches: list[Batch]) -> Batch:
    """Return one batch with the columns of all."""
    if len(batches) == 1:
        return batches[0]
    parts = [batch.arrays() for batch in batches]
    return window_from({name: np.concatenate([part[name] for part in parts], column_axis(name)) for name in parts[0]})
