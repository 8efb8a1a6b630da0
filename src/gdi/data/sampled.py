"""Sampled replay: a long memory of steps, from which every update draws slices uniformly.

Memory is a ring of slots. A slot holds a few windows of one stream in a row, so that each frame is stored once. The key
of a window says its place by arithmetic, so numbers and arrays need no common table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdi.config import SampledReplayConfig
from gdi.data.base import ONE_STREAM, Added, Draws, Origin
from gdi.types import Array, State


@dataclass(frozen=True)
class Layout:
    """Where windows lie: ``num_slots`` slots of ``slot_windows`` windows, each of ``window_steps`` rows."""

    num_slots: int
    slot_windows: int
    window_steps: int
    num_envs: int

    @property
    def slot_steps(self) -> int:
        return self.slot_windows * self.window_steps

    def numbers(self) -> Array:
        return np.array([self.num_slots, self.slot_windows, self.window_steps, self.num_envs])

    def place(self, key: int) -> tuple[int, int]:
        """Return the slot of a window and its first row there."""
        number, place = divmod(key, self.slot_windows)
        return number % self.num_slots, place * self.window_steps


@dataclass
class OpenSlot:
    """The slot that a stream fills: its number, counted over the whole run, and how far it is."""

    number: int
    windows: int = 0
    next_step: int | None = None  # of the stream; None if it is not known


def make_layout(config: SampledReplayConfig, num_envs: int, streams: int = 1) -> Layout:
    """Return the layout for windows of ``num_envs`` columns from so many streams."""
    slot_windows = config.slot_windows(num_envs)
    return Layout(config.num_slots(num_envs, streams), slot_windows, config.sequence_steps, num_envs)


class SampledReplay:
    """Facts of windows in, uniform draws out: a fixed number of updates per transition."""

    def __init__(self, config: SampledReplayConfig, layout: Layout, rng: np.random.Generator) -> None:
        self._config = config
        self._layout = layout
        self._rng = rng
        self._slots_begun = 0
        self._open: dict[int, OpenSlot] = {}  # by stream
        self._transitions = 0  # those that bring updates
        self._to_fill = 0  # transitions that fill a lost memory again, and bring none
        self._updates = 0  # handed out
        self._in_flight = 0  # batches
        shape = (layout.num_slots, layout.slot_steps, layout.num_envs)
        self._valid = np.zeros(shape, bool)
        self._eligible = np.zeros(shape, bool)  # a slice may begin here

    def add(self, window: Added, origin: Origin = ONE_STREAM) -> int:
        """Take a new window over the oldest ones, and return its key."""
        key = self._key(window, origin)
        slot, row = self._layout.place(key)
        if row == 0:
            self._valid[slot] = False
        end = row + self._layout.window_steps
        self._valid[slot, row:end] = window.valid
        last = end - self._config.slice_steps + 1  # a slice that begins later has no bootstrap row yet
        self._eligible[slot] = self._valid[slot]
        self._eligible[slot, max(0, last) :] = False
        transitions = int(window.valid.sum())
        filling = min(transitions, self._to_fill)
        self._to_fill -= filling
        self._transitions += transitions - filling
        return key

    def _key(self, window: Added, origin: Origin) -> int:
        """Return the key of the next window of a stream: behind its last one, or in a new slot."""
        slot = self._open.get(origin.stream)
        if slot is None or not self._continues(slot, window, origin):
            slot = self._open[origin.stream] = OpenSlot(self._slots_begun)
            self._slots_begun += 1
        key = slot.number * self._layout.slot_windows + slot.windows
        slot.windows += 1
        slot.next_step = None if origin.first_step is None else origin.first_step + self._layout.window_steps
        return key

    def _continues(self, slot: OpenSlot, window: Added, origin: Origin) -> bool:
        """Return whether the slot has room, still belongs to the stream, and the window follows its last one.

        A resumed environment that could not be saved begins new episodes, and no slice may reach into them.
        """
        if slot.windows == self._layout.slot_windows or slot.number + self._layout.num_slots < self._slots_begun:
            return False
        last = slot.windows * self._layout.window_steps - 1
        if (self._valid[slot.number % self._layout.num_slots, last] & window.episode_start[0]).any():
            return False
        return slot.next_step is None or origin.first_step is None or slot.next_step == origin.first_step

    @property
    def has_room(self) -> bool:
        return True

    @property
    def waiting(self) -> int:
        return self._in_flight * self._config.batch_size_sequences

    def due(self, *, last: bool) -> Draws:
        """Draw every batch that the transitions so far bring; none is left for the ``last`` call."""
        size = self._config.batch_size_sequences
        batches = self._config.updates_due(self._transitions) - self._updates
        slot, row, column = self._draw(batches * size)
        self._updates += batches
        self._in_flight += batches
        return Draws(slot, column, np.arange(batches + 1) * size, row)

    def _draw(self, count: int) -> tuple[Array, Array, Array]:
        """Return the slots, rows and columns of ``count`` uniform draws with replacement from the eligible starts."""
        filled = self._eligible[: self._slots_begun]
        flat = filled.reshape(-1)
        found, lacking = [], count
        if count and not flat.any():
            raise RuntimeError("the replay holds no whole slice: raise its learn start")
        while lacking > 0:
            drawn = self._rng.integers(len(flat), size=lacking + lacking // 8 + 8)
            drawn = drawn[flat[drawn]][:lacking]
            found.append(drawn)
            lacking -= len(drawn)
        places = np.concatenate(found) if found else np.zeros(0, np.int64)
        slot, row, column = np.unravel_index(places, filled.shape)
        return slot, row, column

    def learned(self, batches: int) -> None:
        self._in_flight -= batches

    def kept(self) -> list[int]:
        """Return no window: the store copies the steps that it needs."""
        return []

    def state_dict(self) -> State:
        """Batches in flight count as not yet drawn: a run that is resumed draws them again."""
        return {
            "rng": self._rng.bit_generator.state,
            "slots_begun": self._slots_begun,
            "open": {str(stream): [s.number, s.windows, s.next_step] for stream, s in self._open.items()},
            "transitions": self._transitions,
            "to_fill": self._to_fill,
            "updates": self._updates - self._in_flight,
            "valid": self._valid,
            "eligible": self._eligible,
        }

    def load_state_dict(self, state: State, *, arrays: bool = True) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._transitions, self._to_fill = int(state["transitions"]), int(state.get("to_fill", 0))
        self._updates, self._in_flight = int(state["updates"]), 0
        if not arrays:
            self._to_fill = min(self._transitions, self._config.learn_start_transitions)
            return
        self._slots_begun = int(state["slots_begun"])
        self._open = {int(stream): OpenSlot(*numbers) for stream, numbers in state["open"].items()}
        self._valid[:], self._eligible[:] = state["valid"], state["eligible"]
