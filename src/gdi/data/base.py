"""The interface of a replay. It schedules sequences by number and does not hold their arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from gdi.types import Array, State

NO_STARTS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Draws:
    """All batches of an iteration, drawn before any of them is trained.

    A draw is a column of stored steps and the row it begins at. Exact replay names windows by keys that are never
    used again; sampled replay names its slots.
    """

    key: Array  # [draws] int64
    column: Array  # [draws] int64
    bounds: Array  # [batches + 1] int64
    start: Array = field(default_factory=lambda: NO_STARTS)  # [draws] int64; empty: whole windows, which begin at row 0

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def part(self, number: int, rank: int = 0, size: int = 1) -> slice:
        """Where the draws of one batch stand, or of the part of it that one of ``size`` learners trains.

        Parts are as equal as can be, and none is lost.
        """
        first, count = int(self.bounds[number]), int(self.bounds[number + 1] - self.bounds[number])
        return slice(first + rank * count // size, first + (rank + 1) * count // size)

    def batch(self, number: int, rank: int = 0, size: int = 1) -> list[tuple[int, Array, Array]]:
        """(key, columns, starts) of one batch or of a part of it. Neighbors with the same key come together."""
        part = self.part(number, rank, size)
        if part.start == part.stop:
            return []
        key, column = self.key[part], self.column[part]
        start = self.start[part] if len(self.start) else NO_STARTS
        borders = np.flatnonzero(np.diff(key)) + 1
        starts = np.split(start, borders) if len(start) else [start] * (len(borders) + 1)
        parts = zip(np.split(key, borders), np.split(column, borders), starts, strict=True)
        return [(int(keys[0]), columns, begins) for keys, columns, begins in parts]


def join_draws(parts: list[Draws]) -> Draws:
    """Concatenate the batches of several draws."""
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    key, column, start = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "column", "start")
    )
    return Draws(key, column, np.concatenate([[0], np.cumsum(sizes)]), start)


class Added(Protocol):
    """The facts of a new window that a replay needs; ``Window`` has them, and so has one that lives elsewhere."""

    @property
    def num_sequences(self) -> int: ...

    @property
    def valid(self) -> Array: ...

    @property
    def episode_start(self) -> Array: ...


@dataclass(frozen=True)
class Origin:
    """Where a window comes from: its stream, and the number of its first step there, if known."""

    stream: int = 0
    first_step: int | None = None


ONE_STREAM = Origin()


@dataclass(frozen=True)
class SavedFiles:
    """The files of a checkpoint that a store wrote: their folder, and the SHA-256 of each by name."""

    folder: Path
    sha256: dict[str, str]


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

    def add(self, window: Added, origin: Origin = ONE_STREAM) -> int:
        """Take a new window; returns its key. Call it only when ``has_room``."""
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

    def load_state_dict(self, state: State, *, arrays: bool = True) -> None:
        """Continue the schedule. Without ``arrays`` the stored steps are lost, and the replay begins empty."""
        ...


def collector_state(replay: State, arrays: State) -> State:
    """Join the states of a replay and of the arrays behind it under the names of a checkpoint, for every runtime.

    Arrays that a store keeps in files of its own, or that are not saved, are not in it.
    """
    if "windows" not in replay or "windows" not in arrays:
        return replay
    kept = {key: {**numbers, **arrays["windows"][key]} for key, numbers in replay["windows"].items()}
    return {**replay, "windows": kept}
