"""What the loop asks of a replay. A replay deals in numbers, and whoever trains has the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gdi.types import Array, State


@dataclass(frozen=True)
class Draws:
    """All batches of an iteration, drawn before any is learned; batch u is ``bounds[u]`` to ``bounds[u + 1]``.

    A draw is a column of a window, and windows are named by keys that are never used again.
    """

    key: Array  # [draws] int64
    column: Array  # [draws] int64
    bounds: Array  # [batches + 1] int64

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def batch(self, number: int, rank: int = 0, size: int = 1) -> list[tuple[int, Array]]:
        """(key, columns) of one batch, or of the part of it that one of ``size`` learners trains.

        Parts are as equal as can be, and none is lost. Neighbors with the same key come together.
        """
        first, count = int(self.bounds[number]), int(self.bounds[number + 1] - self.bounds[number])
        begin, end = first + rank * count // size, first + (rank + 1) * count // size
        if begin == end:
            return []
        key, column = self.key[begin:end], self.column[begin:end]
        borders = np.flatnonzero(np.diff(key)) + 1
        parts = zip(np.split(key, borders), np.split(column, borders), strict=True)
        return [(int(keys[0]), columns) for keys, columns in parts]


def join_draws(parts: list[Draws]) -> Draws:
    """Their batches, one after the other."""
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    key, column = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "column"))
    return Draws(key, column, np.concatenate([[0], np.cumsum(sizes)]))


class Replay(Protocol):
    """Says what is trained next. A draw is in flight until it is learned."""

    @property
    def has_room(self) -> bool:
        """Back-pressure: false while a whole batch waits to be trained."""
        ...

    @property
    def waiting(self) -> int:
        """Draws that are due and not learned."""
        ...

    def add(self, num_sequences: int) -> int:
        """Take a new window; returns its key. Call it only when ``has_room``."""
        ...

    def due(self, *, last: bool) -> Draws:
        """Every whole batch that is due, now in flight; ``last``: no window will come any more, so everything is."""
        ...

    def learned(self, batches: int) -> None:
        """The oldest so many batches in flight are done, the one that raised an error included."""
        ...

    def kept(self) -> list[int]:
        """Keys of the windows that are still needed, oldest first."""
        ...

    def state_dict(self) -> State:
        """Numbers only. Batches in flight count as due, so a run that is resumed trains what nobody has learned.

        "windows" holds an entry per kept window, by its key.
        """
        ...

    def load_state_dict(self, state: State) -> None: ...


def collector_state(replay: Replay, arrays: Mapping[int, dict[str, Array]]) -> State:
    """A replay and the arrays of its windows under the names of a checkpoint, for every runtime."""
    state = replay.state_dict()
    windows = {key: {**kept, "arrays": arrays[int(key)]} for key, kept in state["windows"].items()}
    return {**state, "windows": windows}


def load_collector_state(replay: Replay, state: State) -> dict[int, dict[str, Array]]:
    """The inverse: load the replay; returns the arrays of its windows by key, oldest first."""
    replay.load_state_dict(state)
    return {key: state["windows"][str(key)]["arrays"] for key in replay.kept()}
