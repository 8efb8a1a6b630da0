"""The interface of a replay. It schedules sequences by number and does not hold their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gdi.types import Array, State


@dataclass(frozen=True)
class Draws:
    """All batches of an iteration, drawn before any of them is trained.

    Batch u consists of the draws from ``bounds[u]`` to ``bounds[u + 1]``. A draw is a column of a window. Windows have
    keys, and a key is never used again.
    """

    key: Array  # [draws] int64
    column: Array  # [draws] int64
    bounds: Array  # [batches + 1] int64

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def batch(self, number: int, rank: int = 0, size: int = 1) -> list[tuple[int, Array]]:
        """Return (key, columns) of one batch, or of the part that one of ``size`` learners trains.

        The parts are as equal as possible and cover the batch. Adjacent draws with the same key form one entry.
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
    """Concatenate the batches of several draws."""
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    key, column = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "column"))
    return Draws(key, column, np.concatenate([[0], np.cumsum(sizes)]))


class Replay(Protocol):
    """A schedule of the sequences to train. A draw is in flight until it is reported as learned."""

    @property
    def has_room(self) -> bool:
        """False while a whole batch waits to be trained, so that sampling does not run ahead."""
        ...

    @property
    def waiting(self) -> int:
        """Number of draws that are due and not learned."""
        ...

    def add(self, num_sequences: int) -> int:
        """Add a new window and return its key. Call it only if ``has_room`` is true."""
        ...

    def due(self, *, last: bool) -> Draws:
        """Return every whole batch that is due, and mark it as in flight.

        With ``last`` no window follows, so all remaining draws are due.
        """
        ...

    def learned(self, batches: int) -> None:
        """Mark the oldest batches in flight as done, including one that raised an error."""
        ...

    def kept(self) -> list[int]:
        """Return the keys of the windows that are still needed, oldest first."""
        ...

    def state_dict(self) -> State:
        """Return the schedule without arrays.

        Batches in flight count as due, because a resumed run must train every batch that was not learned. "windows" has
        one entry per kept window, by its key.
        """
        ...

    def load_state_dict(self, state: State) -> None: ...


def collector_state(replay: Replay, arrays: Mapping[int, dict[str, Array]]) -> State:
    """Return a replay and the arrays of its windows in the checkpoint format that all runtimes share."""
    state = replay.state_dict()
    windows = {key: {**kept, "arrays": arrays[int(key)]} for key, kept in state["windows"].items()}
    return {**state, "windows": windows}


def load_collector_state(replay: Replay, state: State) -> dict[int, dict[str, Array]]:
    """Load a replay from ``collector_state``. Return the arrays of its windows by key, oldest first."""
    replay.load_state_dict(state)
    return {key: state["windows"][str(key)]["arrays"] for key in replay.kept()}
