"""How collected steps become training batches, and how many updates a run makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config

# A stored row of a sampled replay has about so many steps.
SLOT_STEPS = 128
EARLY_START_TRANSITIONS = 1000


@dataclass(frozen=True)
class ExactReplayConfig:
    """Replay that trains on each sequence exactly ``replay`` times and then drops it."""

    kind: ClassVar[str] = "exact"
    at_most: ClassVar[Mapping[str, float]] = {
        **{"batch_size_sequences": 10**6, "burn_in_steps": 10**5, "sequence_steps": 10**5, "slice_steps": 10**5},
        **{"replay": 10**4, "replay_span_windows": 10**4},
    }

    batch_size_sequences: int = 64
    """Number of sequences per update. Table H "Batch size"."""
    burn_in_steps: int = 40
    """Steps that warm up the recurrent state before the trained ones, without gradient. Table H "Burn-in"."""
    sequence_steps: int = 80
    """Number of trained steps per sequence. Table H "Seq-length"."""
    replay: int = 2
    """Number of times that each sequence is trained. Table H "Replay"."""
    replay_span_windows: int = 2
    """Number of collected windows over which the uses of a sequence are spread evenly. More need more memory."""
    push_every_updates: int = 25
    """Updates between two publications of the parameters (d_push). Table H "Learner Push Model Every N Steps"."""
    pull_every_steps: int = 64
    """Steps per environment between two pulls of the parameters by an actor (d_pull). Table H "Actor Pull Model Every N
    Steps"."""
    slice_steps: int = 0
    """Train slices of this many steps of a sequence, each drawn by itself; 0: whole sequences."""

    @property
    def window_steps(self) -> int:
        """Number of steps in a stored sequence, including the burn-in."""
        return self.burn_in_steps + self.sequence_steps

    def trained_transitions(self, steps: int) -> int:
        """Return how many transitions a run of ``steps`` trains, each counted as often as it is trained."""
        return steps * self.replay

    def planned_updates(self, steps: int) -> int:
        """Return the number of learner updates of a whole run, except for the few that resets add.

        It is transitions · replay / transitions per batch. For the paper, it is 50M · 2 / (64 · 80) = 19,531.
        """
        trained_steps = self.slice_steps or self.sequence_steps
        return max(1, self.trained_transitions(steps) // (self.batch_size_sequences * trained_steps))

    def held_windows(self, num_envs: int) -> int:
        """Return the number of windows in memory.

        They are kept until their last use, or wait until a batch is full. One more is being written, and the one before
        it provides the burn-in.
        """
        return self.replay_span_windows + math.ceil(self.batch_size_sequences / num_envs) + 2

    def settled_windows(self, num_envs: int) -> int:
        """Number of windows after which every window brings the same number of updates."""
        return self.replay_span_windows + 2

    @property
    def slices_per_transition(self) -> float:
        """Number of slices that are trained per sampled transition."""
        return self.replay / (self.slice_steps or self.sequence_steps)

    def early_start(self) -> ExactReplayConfig:
        """Return this config, which trains from the first window on."""
        return self

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "data", "batch_size_sequences", "sequence_steps", "replay", "replay_span_windows")
        yield from positive(self, "data", "push_every_updates", "pull_every_steps")
        yield from not_negative(self, "data", "burn_in_steps", "slice_steps")
        yield from slice_problems(self, config)
        if self.burn_in_steps > 0 and config.network.lstm_units == 0:
            yield (
                f"--data.burn-in-steps {self.burn_in_steps} warms up a recurrent state, and --network.lstm-units 0 has "
                "none: set burn-in to 0 or give the network an LSTM."
            )
        kept_steps = self.sequence_steps * self.replay_span_windows
        if self.burn_in_steps > kept_steps:
            yield (
                f"--data.burn-in-steps {self.burn_in_steps} is longer than the memory, which spans {kept_steps} steps "
                f"(sequence-steps {self.sequence_steps} x replay-span-windows {self.replay_span_windows}): shorten it."
            )


@dataclass(frozen=True)
class SampledReplayConfig:
    """A long memory: each update draws slices uniformly, as DQN does."""

    kind: ClassVar[str] = "sampled"
    at_most: ClassVar[Mapping[str, float]] = {
        **{"capacity_transitions": 10**10, "batch_size_sequences": 10**6, "sequence_steps": 10**5},
        **{"slice_steps": 10**5, "updates": 10**4},
    }
    burn_in_steps: ClassVar[int] = 0

    capacity_transitions: int = 1_000_000
    """Transitions in memory; the oldest make room for new ones."""
    learn_start_transitions: int = 50_000
    """Transitions that are sampled before the first update."""
    batch_size_sequences: int = 32
    """Slices per update."""
    slice_steps: int = 1
    """Steps of a slice."""
    sequence_steps: int = 4
    """Steps that each environment acts between two times of learning."""
    updates: int = 1
    """Updates per period."""
    period_transitions: int = 4
    """Transitions of a period."""
    push_every_updates: int = 1
    """Hand the parameters to the actors each time this many updates have passed."""
    pull_every_steps: int = 1
    """Steps of each environment between two pulls of the parameters."""

    @property
    def window_steps(self) -> int:
        """Steps of a stored sequence."""
        return self.sequence_steps

    def slot_windows(self, num_envs: int) -> int:
        """Windows of one stream that lie in a row: long rows store each frame once, many rows forget evenly."""
        longest = max(1, SLOT_STEPS // self.sequence_steps)
        return max(1, min(longest, self.capacity_transitions // (8 * num_envs * self.sequence_steps)))

    def num_slots(self, num_envs: int, streams: int = 1) -> int:
        """Slots that hold the capacity in windows of ``num_envs`` columns, and one that each stream is writing."""
        slot_transitions = num_envs * self.sequence_steps * self.slot_windows(num_envs)
        return math.ceil(self.capacity_transitions / slot_transitions) + streams

    def updates_due(self, transitions: int) -> int:
        """Updates that a run has made after so many transitions: a fixed rational number of them per transition."""
        return max(0, transitions - self.learn_start_transitions) // self.period_transitions * self.updates

    def trained_transitions(self, steps: int) -> int:
        """Transitions that a run of so many steps trains, each counted as often as it is trained."""
        return self.planned_updates(steps) * self.batch_size_sequences * self.slice_steps

    def planned_updates(self, steps: int) -> int:
        """Learner updates of a whole run."""
        return max(1, self.updates_due(steps))

    def settled_windows(self, num_envs: int) -> int:
        """Windows that hold the learn start even if every second step is a reset, and two more."""
        return math.ceil(2 * self.learn_start_transitions / (num_envs * self.sequence_steps)) + 2

    @property
    def slices_per_transition(self) -> float:
        """Slices that are trained per sampled transition, after the learn start."""
        return self.batch_size_sequences * self.updates / self.period_transitions

    def early_start(self) -> SampledReplayConfig:
        """Return the config with a learn start that takes seconds, for measurements of speed."""
        return replace(self, learn_start_transitions=min(self.learn_start_transitions, EARLY_START_TRANSITIONS))

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "data", "capacity_transitions", "batch_size_sequences", "slice_steps")
        yield from positive(self, "data", "sequence_steps", "updates", "period_transitions")
        yield from positive(self, "data", "push_every_updates", "pull_every_steps")
        yield from not_negative(self, "data", "learn_start_transitions")
        if config.network.lstm_units:
            yield (
                f"--data sampled stores no recurrent state, and --network.lstm-units is {config.network.lstm_units}: "
                "set it to 0, or use --data exact."
            )
        least = max(self.batch_size_sequences * self.slice_steps, config.env.num_envs * self.sequence_steps)
        if self.capacity_transitions < least:
            yield (
                f"--data.capacity-transitions {self.capacity_transitions} is smaller than a batch or a window "
                f"({least} transitions): raise it."
            )
        if self.learn_start_transitions > self.capacity_transitions:
            yield (
                f"--data.learn-start-transitions {self.learn_start_transitions} is more than the memory holds "
                f"({self.capacity_transitions}): lower it."
            )
        if self.learn_start_transitions + self.period_transitions > config.steps:
            yield (
                f"--data.learn-start-transitions {self.learn_start_transitions} leaves no update in {config.steps} "
                "steps: lower it, or raise --steps."
            )
        if self.sequence_steps < self.slice_steps and self.learn_start_transitions < (
            whole := self.slice_steps * config.env.num_envs
        ):
            yield (
                f"--data.learn-start-transitions {self.learn_start_transitions} is before the first slice of "
                f"{self.slice_steps} steps is whole: raise it to {whole}."
            )
        rows = self.sequence_steps * self.slot_windows(config.env.num_envs)
        if self.slice_steps > rows:
            yield (
                f"--data.slice-steps {self.slice_steps} is longer than a stored row of {rows} steps: shorten it, or "
                "raise --data.capacity-transitions."
            )


def slice_problems(data: ExactReplayConfig, config: Config) -> Iterator[str]:
    """Slices begin inside a sequence, where no recurrent state is stored."""
    if not data.slice_steps:
        return
    if config.network.lstm_units or data.burn_in_steps:
        yield (
            f"--data.slice-steps {data.slice_steps} cuts sequences where no recurrent state is stored, and "
            f"--network.lstm-units is {config.network.lstm_units}: set slice-steps to 0, or lstm-units to 0."
        )
    if data.sequence_steps % data.slice_steps:
        yield (
            f"--data.slice-steps {data.slice_steps} does not divide --data.sequence-steps {data.sequence_steps}: "
            "choose a divisor."
        )


DataConfig = ExactReplayConfig | SampledReplayConfig
