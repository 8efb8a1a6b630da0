"""The arrays of a sampled replay: one array per field, filled slot by slot and gathered by one flat ``take``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gdi.data.base import Draws, SavedFiles
from gdi.data.sampled import Layout
from gdi.data.slices import ages, take_slices
from gdi.data.slot_files import is_slot_name, link_slot, read_slot, slot_name, slot_of, write_slot
from gdi.types import Array, Batch, State, Window, column_slice, window_from

# Batches of an iteration are gathered together up to this size: one large take is faster than many small ones.
GATHER_BYTES = 50 << 20


class SlotStore:
    """Steps of windows in slots: ``[slots, context + steps + 1, B, ...]`` for every field.

    Row r of a slot is observation r of its stream; ``obs`` has the frames before the first row in front.
    """

    copies = True

    def __init__(self, layout: Layout, slice_steps: int) -> None:
        self._layout = layout
        self._slice_steps = slice_steps
        self._arrays: dict[str, Array] = {}
        self._age: Array = np.zeros(0, np.uint8)
        self._context = 0
        self._filled: dict[int, int] = {}  # windows in each slot, by its number over the whole run
        self._state: Array = np.zeros(0)
        self._gathered: tuple[Draws, Batch] | None = None

    def __len__(self) -> int:
        """Windows in memory. A slot that is being overwritten still has old ones."""
        layout = self._layout
        return sum(w if number < layout.num_slots else layout.slot_windows for number, w in self._filled.items())

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
        if row > 0:
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
        self._count(key)

    def _count(self, key: int) -> None:
        number, place = divmod(key, self._layout.slot_windows)
        self._filled.pop(number - self._layout.num_slots, None)  # the slot that this one overwrites
        self._filled[number] = place + 1

    def _allocate(self, window: Window) -> None:
        context = len(window.obs) - len(window.episode_start)
        arrays = {name: array for name, array in window.arrays().items() if name != "state"}
        shape = (context + self._layout.slot_steps + 1, self._layout.num_envs)
        like = {name: np.empty((*shape, *array.shape[2:]), array.dtype) for name, array in arrays.items()}
        self._make_arrays(like, context, window.state[:0])

    def _make_arrays(self, slot: dict[str, Array], context: int, state: Array) -> None:
        """Make all slots of the shape of one. Memory that is never written is not taken from the machine."""
        count = self._layout.num_slots
        self._arrays = {name: np.zeros((count, *array.shape), array.dtype) for name, array in slot.items()}
        self._age = np.zeros((count, context + self._layout.slot_steps + 1, self._layout.num_envs), np.uint8)
        self._context, self._state = context, state

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
        return slices * (self._context + self._slice_steps + 1) * obs.itemsize * math.prod(obs.shape[3:])

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
        """Return nothing, because the slots are files of their own."""
        return {}

    def load_state_dict(self, state: State) -> None: ...

    def save(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        """Write one file per slot. A slot that has not changed since ``before`` is linked, so it is written once."""
        digests = {}
        for number, windows in self._filled.items():
            name = slot_name(number, windows)
            if before is not None and name in before.sha256 and link_slot(before, folder, name):
                digests[name] = before.sha256[name]
            else:
                digests[name] = write_slot(folder / name, self._slot(number % self._layout.num_slots))
        return SavedFiles(folder, digests)

    def _slot(self, slot: int) -> dict[str, Array]:
        arrays = {name: array[slot] for name, array in self._arrays.items()}
        return {**arrays, "age": self._age[slot], "state": self._state, "layout": self._layout.numbers()}

    def load(self, saved: SavedFiles) -> bool:
        """Read the slots; return False if there are none, or if they had another layout."""
        layout, names = self._layout, sorted(filter(is_slot_name, saved.sha256))
        for name in names:
            arrays = read_slot(saved.folder / name)
            age, state = arrays.pop("age"), arrays.pop("state")
            if not np.array_equal(arrays.pop("layout"), layout.numbers()):
                return False
            if not self._arrays:
                self._make_arrays(arrays, len(age) - layout.slot_steps - 1, state)
            number, windows = slot_of(name)
            slot = number % layout.num_slots
            for field, array in arrays.items():
                self._arrays[field][slot] = array
            self._age[slot] = age
            self._filled[number] = windows
        return bool(names)
