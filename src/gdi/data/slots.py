"""The arrays of a sampled replay: one array per field, filled slot by slot and gathered by one flat ``take``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gdi.data.base import Draws
from gdi.data.sampled import Layout
from gdi.data.slices import ages, take_slices
from gdi.types import Array, Batch, State, Window, column_slice, window_from

# Batches of an iteration are gathered together up to this size: one large take is faster than many small ones.
GATHER_BYTES = 50 << 20


class SlotStore:
    """Steps of windows in slots: ``[slots, context + steps + 1, B, ...]`` for every field.

    Row r of a slot is observation r of its stream; ``obs`` has the frames before the first row in front.
    """

    def __init__(self, layout: Layout, slice_steps: int) -> None:
        self._layout = layout
        self._slice_steps = slice_steps
        self._arrays: dict[str, Array] = {}
        self._age: Array = np.zeros(0, np.uint8)
        self._context = 0
        self._added = 0
        self._state: Array = np.zeros(0)
        self._gathered: tuple[Draws, Batch] | None = None

    def __len__(self) -> int:
        return min(self._added, self._layout.num_slots * self._layout.slot_windows)

    @property
    def num_bytes(self) -> int:
        """Bytes of the filled part: memory that was never written is not taken from the machine."""
        share = len(self) / (self._layout.num_slots * self._layout.slot_windows)
        return int(share * sum(array.nbytes for array in self._arrays.values()))

    def put(self, key: int, window: Window) -> None:
        """Copy a window's steps to its place. Its last row is the next window's first, which overwrites it."""
        if not self._arrays:
            self._allocate(window)
        slot, row = self._layout.place(key)
        steps, context = self._layout.window_steps, self._context
        if row > 0:  # a stream that begins again: its last step before has no successor
            self._arrays["valid"][slot, row - 1] &= ~window.episode_start[0]
            # A fault in the first step dropped the rest of the episode, as a truncation of the step before.
            going_on = self._arrays["valid"][slot, row - 1] & ~self._arrays["terminated"][slot, row - 1]
            self._arrays["truncated"][slot, row - 1] |= going_on & ~window.valid[0]
        for name, array in window.arrays().items():
            if name == "state":
                continue
            target, first = self._arrays[name][slot], row
            if name == "obs":
                if row:  # the frames in front stand there already
                    array, first = array[context:], row + context
                target[first : first + len(array)] = array
            else:
                target[row : row + len(array)] = array
        self._age[slot, row : row + steps + 1] = self._ages(window.episode_start, slot, row)
        self._added = key + 1

    def _allocate(self, window: Window) -> None:
        self._context = len(window.obs) - len(window.episode_start)
        self._state = window.state[:0]
        rows = self._context + self._layout.slot_steps + 1
        shape = (self._layout.num_slots, rows, self._layout.num_envs)
        arrays = {name: array for name, array in window.arrays().items() if name != "state"}
        self._arrays = {name: np.zeros((*shape, *array.shape[2:]), array.dtype) for name, array in arrays.items()}
        self._age = np.zeros(shape, np.uint8)

    def _ages(self, episode_start: Array, slot: int, row: int) -> Array:
        """Return how many frames before each row of a new window belong to its episode."""
        found = ages(episode_start, self._context)
        if row == 0:
            return found
        so_far = self._age[slot, row - 1].astype(np.int64) + 1 + np.arange(len(episode_start))[:, None]
        started = np.logical_or.accumulate(episode_start, axis=0)
        return np.where(started, found, np.minimum(so_far, self._context))

    def gather(self, draws: Draws, number: int, rank: int = 0, size: int = 1) -> Batch | None:
        part = draws.part(number, rank, size)
        if part.start == part.stop:
            return None
        if self._batch_bytes(len(draws.key)) > GATHER_BYTES:
            return self._take(draws.key[part], draws.column[part], draws.start[part])
        if self._gathered is None or self._gathered[0] is not draws:
            self._gathered = draws, self._take(draws.key, draws.column, draws.start)
        return column_slice(self._gathered[1], part.start, part.stop)

    def _batch_bytes(self, slices: int) -> int:
        obs = self._arrays["obs"]
        return slices * (self._context + self._slice_steps + 1) * obs.itemsize * int(np.prod(obs.shape[3:]))

    def _take(self, slot: Array, column: Array, row: Array) -> Batch:
        rows = self._age.shape[1]
        width = self._layout.num_envs
        arrays = {name: array.reshape(-1, *array.shape[2:]) for name, array in self._arrays.items()}
        age = self._age.reshape(-1, width)
        taken = take_slices(arrays, age, column, slot * rows + row, self._slice_steps, self._context)
        return window_from({**taken, "state": np.zeros((len(slot), *self._state.shape[1:]), np.float32)})

    def keep(self, keys: Iterable[int]) -> None:
        """Nothing is dropped: new windows overwrite the oldest ones."""
        self._gathered = None

    def state_dict(self) -> State:
        if not self._arrays:
            return {"slots": {}}
        return {"slots": {**self._arrays, "age": self._age, "state": self._state}, "context": self._context}

    def load_state_dict(self, state: State) -> None:
        slots = dict(state["slots"])
        if not slots:
            return
        self._added, self._context = int(state["added"]), int(state["context"])
        self._age, self._state = np.array(slots.pop("age")), np.array(slots.pop("state"))
        self._arrays = {name: np.array(array) for name, array in slots.items()}
