"""Exact replay: each sequence is trained exactly R times, and then dropped.

With ``replay`` R and ``replay_span_windows`` W, the uses of a window are due when it is 0, W/R, 2W/R, ... windows old.
The first use is due at once, and the others are spread over the next W windows. No use falls due after W windows, so
memory holds at most W of them, plus those of an unfinished batch. Uses that fall due together are shuffled and split
into batches.
"""

from __future__ import annotations

import numpy as np

from gdi.config import ExactReplayConfig
from gdi.data.base import ONE_STREAM, Added, Draws, Origin
from gdi.types import Array, State

NO_USES = np.zeros((0, 2), np.int64)


class ExactReplay:
    """A replay in which every sequence is used exactly R times."""

    def __init__(self, config: ExactReplayConfig, rng: np.random.Generator) -> None:
        self._batch_size = config.batch_size_sequences
        self._replay = config.replay
        self._span = config.replay_span_windows
        self._slices = config.sequence_steps // config.slice_steps if config.slice_steps else 1  # of a column
        self._slice_steps = config.slice_steps
        self._rng = rng
        self._added = 0  # number of windows so far, which sets when uses fall due and is the next window's key
        self._num_sequences: dict[int, int] = {}  # by key, for the windows still needed
        self._uses_scheduled: dict[int, int] = {}
        self._due: Array = NO_USES  # [uses, (key, column)], in training order
        self._in_flight: list[Array] = []  # batches returned by ``due``, each [uses, (key, column)] in draw order
        self._finished = False

    def add(self, window: Added, origin: Origin = ONE_STREAM) -> int:
        """Take a new window, and schedule every use that falls due at its arrival.

        Call it only if ``has_room`` is true, because the replay never drops a use that it scheduled.
        """
        if not self.has_room:
            raise RuntimeError("the replay is full: train the due batches before you add a window.")
        key = self._added
        self._num_sequences[key] = window.num_sequences
        self._uses_scheduled[key] = 0
        self._added += 1
        self._schedule()
        return key

    def _schedule(self) -> None:
        # Schedule pass by pass. Uses of one sequence that fall due together are then a whole pass apart.
        while fallen_due := [key for key in self._num_sequences if self._is_due(key)]:
            # A use is a column, or a slice of one: slice i of column c has the number c · slices + i.
            counts = [self._num_sequences[key] * self._slices for key in fallen_due]
            columns = np.concatenate([np.arange(count) for count in counts])
            uses = np.stack([np.repeat(fallen_due, counts), columns], axis=1)
            self._due = np.concatenate([self._due, uses[self._rng.permutation(len(uses))]])
            for key in fallen_due:
                self._uses_scheduled[key] += 1

    def _is_due(self, key: int) -> bool:
        """Return whether the window's next use k is due, which is at age ⌊k·W/R⌋."""
        use, age = self._uses_scheduled[key], self._added - 1 - key
        return use < self._replay and use * self._span // self._replay <= age

    @property
    def has_room(self) -> bool:
        return len(self._due) < self._batch_size

    @property
    def waiting(self) -> int:
        return len(self._due) + sum(map(len, self._in_flight))

    def due(self, *, last: bool) -> Draws:
        """Return every whole batch; ``last`` adds all remaining uses in the order they would fall due."""
        if last:
            self._finish()
        size = self._batch_size
        number = -(-len(self._due) // size) if last else len(self._due) // size
        batches = [self._due[i * size : (i + 1) * size] for i in range(number)]
        self._due = self._due[number * size :]
        self._in_flight += batches
        grouped = [_by_window(batch) for batch in batches]
        uses = np.concatenate(grouped) if grouped else NO_USES
        bounds = np.cumsum([0, *map(len, grouped)])
        if not self._slice_steps:
            return Draws(uses[:, 0], uses[:, 1], bounds)
        column, place = np.divmod(uses[:, 1], self._slices)
        return Draws(uses[:, 0], column, bounds, place * self._slice_steps)

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            for _ in range(self._span):
                self._added += 1
                self._schedule()

    def learned(self, batches: int) -> None:
        self._in_flight = self._in_flight[batches:]
        needed = set(np.concatenate([*self._in_flight, self._due])[:, 0].tolist())
        for key in [k for k, uses in self._uses_scheduled.items() if uses == self._replay and k not in needed]:
            del self._num_sequences[key], self._uses_scheduled[key]

    def kept(self) -> list[int]:
        return list(self._num_sequences)

    def state_dict(self) -> State:
        """Return the schedule; batches in flight count as due, because they were not learned."""
        return {
            "rng": self._rng.bit_generator.state,
            "added": self._added,
            "finished": self._finished,
            "due": np.concatenate([*self._in_flight, self._due]),
            "windows": {str(key): {"uses_scheduled": uses} for key, uses in self._uses_scheduled.items()},
        }

    def load_state_dict(self, state: State, *, arrays: bool = True) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._added = int(state["added"])
        self._finished = bool(state["finished"])
        if not arrays:
            return
        self._due, self._in_flight = np.array(state["due"], np.int64).reshape(-1, 2), []
        windows = {int(key): kept for key, kept in sorted(state["windows"].items(), key=lambda item: int(item[0]))}
        self._uses_scheduled = {key: int(kept["uses_scheduled"]) for key, kept in windows.items()}
        self._num_sequences = {key: len(kept["arrays"]["state"]) for key, kept in windows.items()}


def _by_window(batch: Array) -> Array:
    """Group a batch by window, in the order of first draws, so that one copy per window gathers it."""
    _, first, window = np.unique(batch[:, 0], return_index=True, return_inverse=True)
    return batch[np.argsort(first[window], kind="stable")]
