"""Sampled replay: a long memory of steps, from which every update draws slices uniformly.

Memory is a ring of slots. A slot holds a few windows of one stream in a row, so that each frame is stored once. Window
number k of a run lies at a place that arithmetic knows, so numbers and arrays need no common table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdi.config import SampledReplayConfig
from gdi.data.base import Added, Draws
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

    def place(self, window: int) -> tuple[int, int]:
        """Return the slot of a window and its first row there."""
        slot, number = divmod(window, self.slot_windows)
        return slot % self.num_slots, number * self.window_steps


def make_layout(config: SampledReplayConfig, num_envs: int) -> Layout:
    slot_windows = config.slot_windows(num_envs)
    return Layout(config.num_slots(num_envs, slot_windows), slot_windows, config.sequence_steps, num_envs)


class SampledReplay:
    """Facts of windows in, uniform draws out: a fixed number of updates per transition."""

    def __init__(self, config: SampledReplayConfig, num_envs: int, rng: np.random.Generator) -> None:
        self._config = config
        self._layout = layout = make_layout(config, num_envs)
        self._rng = rng
        self._added = 0  # windows
        self._transitions = 0
        self._updates = 0  # handed out
        self._in_flight = 0  # batches
        shape = (layout.num_slots, layout.slot_steps, num_envs)
        self._valid = np.zeros(shape, bool)
        self._eligible = np.zeros(shape, bool)  # a slice may begin here

    def add(self, window: Added) -> int:
        """Take a new window over the oldest one, and return its number."""
        key = self._added
        slot, row = self._layout.place(key)
        if row == 0:
            self._valid[slot] = False
        elif (broken := self._valid[slot, row - 1] & window.episode_start[0]).any():
            # The stream begins again without an end of the episode: its last step has no successor.
            self._valid[slot, row - 1] &= ~broken
        end = row + self._layout.window_steps
        self._valid[slot, row:end] = window.valid
        last = end - self._config.slice_steps + 1  # a slice that begins later has no bootstrap row yet
        self._eligible[slot] = self._valid[slot]
        self._eligible[slot, max(0, last) :] = False
        self._added += 1
        self._transitions += int(window.valid.sum())
        return key

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
        filled = self._eligible[: -(-self._added // self._layout.slot_windows)]
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
            "added": self._added,
            "transitions": self._transitions,
            "updates": self._updates - self._in_flight,
            "valid": self._valid,
            "eligible": self._eligible,
        }

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._added, self._transitions = int(state["added"]), int(state["transitions"])
        self._updates, self._in_flight = int(state["updates"]), 0
        self._valid[:], self._eligible[:] = state["valid"], state["eligible"]
