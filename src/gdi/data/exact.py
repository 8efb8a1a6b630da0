"""Exact replay: each sequence is trained exactly R times, and then dropped.

With ``replay`` R and ``replay_span_windows`` W, the uses of a window are due when it is 0, W/R, 2W/R, ... windows old:
the first at once, the others spread over the next W windows. Nothing older than W windows is ever trained, so memory
holds at most W of them, and those of an unfinished batch. What falls due together is shuffled and cut into batches.
"""

from __future__ import annotations

import numpy as np

from gdi.config import ExactReplayConfig
from gdi.data.base import Draws
from gdi.types import Array, State

NO_USES = np.zeros((0, 2), np.int64)


class ExactReplay:
    """Numbers of windows in, numbers of batches out."""

    def __init__(self, config: ExactReplayConfig, rng: np.random.Generator) -> None:
        self._batch_size = config.batch_size_sequences
        self._replay = config.replay
        self._span = config.replay_span_windows
        self._rng = rng
        self._added = 0  # windows so far: the clock by which uses fall due, and the next window's key
        self._num_sequences: dict[int, int] = {}  # by key, of the windows still needed
        self._uses_scheduled: dict[int, int] = {}
        self._due: Array = NO_USES  # [uses, (key, column)], in the order they will be trained
        self._in_flight: list[Array] = []  # batches handed out, each [uses, (key, column)] in draw order
        self._finished = False

    def add(self, num_sequences: int) -> int:
        """Take a new window, and schedule every use that falls due at its arrival.

        Call it only when ``has_room``: the replay holds what it promised to train, and drops nothing.
        """
        if not self.has_room:
            raise RuntimeError("the replay is full: train what is due before adding more")
        key = self._added
        self._num_sequences[key] = num_sequences
        self._uses_scheduled[key] = 0
        self._added += 1
        self._schedule()
        return key

    def _schedule(self) -> None:
        # Pass by pass, so that uses of one sequence that fall due together are a whole pass apart.
        while fallen_due := [key for key in self._num_sequences if self._is_due(key)]:
            counts = [self._num_sequences[key] for key in fallen_due]
            columns = np.concatenate([np.arange(count) for count in counts])
            uses = np.stack([np.repeat(fallen_due, counts), columns], axis=1)
            self._due = np.concatenate([self._due, uses[self._rng.permutation(len(uses))]])
            for key in fallen_due:
                self._uses_scheduled[key] += 1

    def _is_due(self, key: int) -> bool:
        """Use k of a window is due at age ⌊k·W/R⌋."""
        use, age = self._uses_scheduled[key], self._added - 1 - key
        return use < self._replay and use * self._span // self._replay <= age

    @property
    def has_room(self) -> bool:
        return len(self._due) < self._batch_size

    @property
    def waiting(self) -> int:
        return len(self._due) + sum(map(len, self._in_flight))

    def due(self, *, last: bool) -> Draws:
        """Every whole batch; ``last`` gives all remaining uses, in the order in which they would have fallen due."""
        if last:
            self._finish()
        size = self._batch_size
        number = -(-len(self._due) // size) if last else len(self._due) // size
        batches = [self._due[i * size : (i + 1) * size] for i in range(number)]
        self._due = self._due[number * size :]
        self._in_flight += batches
        grouped = [_by_window(batch) for batch in batches]
        uses = np.concatenate(grouped) if grouped else NO_USES
        return Draws(uses[:, 0], uses[:, 1], np.cumsum([0, *map(len, grouped)]))

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
        """What is in flight counts as due: nobody has learned it."""
        return {
            "rng": self._rng.bit_generator.state,
            "added": self._added,
            "finished": self._finished,
            "due": np.concatenate([*self._in_flight, self._due]),
            "windows": {str(key): {"uses_scheduled": uses} for key, uses in self._uses_scheduled.items()},
        }

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._added = int(state["added"])
        self._finished = bool(state["finished"])
        self._due, self._in_flight = np.array(state["due"], np.int64).reshape(-1, 2), []
        windows = {int(key): kept for key, kept in sorted(state["windows"].items(), key=lambda item: int(item[0]))}
        self._uses_scheduled = {key: int(kept["uses_scheduled"]) for key, kept in windows.items()}
        self._num_sequences = {key: len(kept["arrays"]["state"]) for key, kept in windows.items()}


def _by_window(batch: Array) -> Array:
    """Columns of one window together, windows in the order of their first draw: one copy per window gathers them."""
    _, first, window = np.unique(batch[:, 0], return_index=True, return_inverse=True)
    return batch[np.argsort(first[window], kind="stable")]
