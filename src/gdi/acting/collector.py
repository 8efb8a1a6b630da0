"""The data collector: holds windows of sequences and says what is trained next, each sequence exactly R times.

With ``replay`` R and ``replay_span_windows`` W, the uses of a window are due when it is 0, W/R, 2W/R, ... windows old:
the first at once, the others spread over the next W windows. Nothing older than W windows is ever trained, so memory
holds at most W of them, and those of an unfinished batch. What falls due together is shuffled and cut into batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np

from gdi.config import LearnerConfig
from gdi.types import Array, State


class Window(Protocol):
    """A window of sequences, or something that stands for one kept elsewhere."""

    @property
    def num_sequences(self) -> int: ...

    @property
    def num_bytes(self) -> int: ...

    def arrays(self) -> dict[str, Array]: ...


W = TypeVar("W", bound=Window)
Uses = list[tuple[W, Array]]
"""One batch: columns of windows."""


class Collector(Generic[W]):
    """Windows in, batches out, as columns of windows: whoever trains them gathers them."""

    def __init__(
        self, config: LearnerConfig, rng: np.random.Generator, restore: Callable[[dict[str, Array]], W]
    ) -> None:
        """``restore`` makes a window out of its arrays, when a checkpoint is loaded."""
        self._restore = restore
        self._batch_size = config.batch_size_sequences
        self._replay = config.replay
        self._span = config.replay_span_windows
        self._rng = rng
        self._windows: dict[int, W] = {}
        self._added = 0  # windows so far: the clock by which uses fall due
        self._uses_scheduled: dict[int, int] = {}
        self._due: list[tuple[int, int]] = []  # (window, column), in the order they will be trained
        self._finished = False

    def add(self, window: W) -> None:
        """Take a new window, and schedule every use that falls due at its arrival.

        Call it only when ``has_room``: the collector holds what it promised to train, and drops nothing.
        """
        if not self.has_room:
            raise RuntimeError("the collector is full: train what is due before adding more")
        self._windows[self._added] = window
        self._uses_scheduled[self._added] = 0
        self._added += 1
        self._schedule()

    def _schedule(self) -> None:
        # Pass by pass, so that uses of one sequence that fall due together are a whole pass apart.
        while fallen_due := [key for key in self._windows if self._is_due(key)]:
            uses = [(key, column) for key in fallen_due for column in range(self._windows[key].num_sequences)]
            self._due += [uses[i] for i in self._rng.permutation(len(uses))]
            for key in fallen_due:
                self._uses_scheduled[key] += 1

    def _is_due(self, key: int) -> bool:
        """Use k of a window is due at age ⌊k·W/R⌋."""
        use, age = self._uses_scheduled[key], self._added - 1 - key
        return use < self._replay and use * self._span // self._replay <= age

    @property
    def has_room(self) -> bool:
        """Back-pressure: false while a whole batch waits to be trained."""
        return len(self._due) < self._batch_size

    def finish(self) -> None:
        """No window will come any more: all remaining uses fall due, in the order in which they would have."""
        if not self._finished:
            self._finished = True
            for _ in range(self._span):
                self._added += 1
                self._schedule()

    @property
    def waiting(self) -> int:
        """Uses that are due."""
        return len(self._due)

    @property
    def windows(self) -> list[W]:
        """Those that will be used again."""
        return list(self._windows.values())

    @property
    def num_bytes(self) -> int:
        return sum(window.num_bytes for window in self._windows.values())

    def next_uses(self, *, allow_partial: bool = False) -> Uses[W] | None:
        """The next batch that is due, or None. ``allow_partial`` gives the last, smaller one too."""
        if not self._due or (len(self._due) < self._batch_size and not allow_partial):
            return None
        chosen, self._due = self._due[: self._batch_size], self._due[self._batch_size :]
        columns: dict[int, list[int]] = {}
        for key, column in chosen:
            columns.setdefault(key, []).append(column)
        uses = [(self._windows[key], np.array(c)) for key, c in columns.items()]
        self._forget()
        return uses

    def _forget(self) -> None:
        """Drop windows whose every use has been handed out."""
        still_due = Counter(key for key, _ in self._due)
        for key in [k for k, uses in self._uses_scheduled.items() if uses == self._replay and not still_due[k]]:
            del self._windows[key], self._uses_scheduled[key]

    def state_dict(self) -> State:
        return {
            "rng": self._rng.bit_generator.state,
            "added": self._added,
            "finished": self._finished,
            "due": np.array(self._due, np.int64).reshape(-1, 2),
            "windows": {
                str(key): {"uses_scheduled": self._uses_scheduled[key], "arrays": window.arrays()}
                for key, window in self._windows.items()
            },
        }

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._added = int(state["added"])
        self._finished = bool(state["finished"])
        self._due = [(int(key), int(column)) for key, column in np.asarray(state["due"])]
        by_age = sorted(state["windows"].items(), key=lambda item: int(item[0]))
        self._windows = {int(key): self._restore(kept["arrays"]) for key, kept in by_age}
        self._uses_scheduled = {int(key): int(kept["uses_scheduled"]) for key, kept in by_age}
