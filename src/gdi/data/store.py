"""A store of window arrays, from which batches are gathered."""

from __future__ import annotations

from collections.abc import Iterable

from gdi.data.base import Draws
from gdi.types import Array, Batch, Window, gather_columns


class WindowStore:
    """The windows by key, as the actor wrote them."""

    def __init__(self) -> None:
        self._windows: dict[int, Window] = {}

    def __len__(self) -> int:
        return len(self._windows)

    @property
    def num_bytes(self) -> int:
        return sum(window.num_bytes for window in self._windows.values())

    def put(self, key: int, window: Window) -> None:
        self._windows[key] = window

    def gather(self, draws: Draws, number: int) -> Batch:
        """Gather the arrays of one batch."""
        return gather_columns([(self._windows[key], columns) for key, columns in draws.batch(number)])

    def keep(self, keys: Iterable[int]) -> None:
        """Keep only the windows with these keys."""
        self._windows = {key: self._windows[key] for key in keys}

    def arrays(self) -> dict[int, dict[str, Array]]:
        return {key: window.arrays() for key, window in self._windows.items()}
