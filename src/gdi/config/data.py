"""How collected steps become training batches, and how many updates a run makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class ExactReplayConfig:
    """Replay that trains on each sequence exactly ``replay`` times and then drops it."""

    kind: ClassVar[str] = "exact"

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
    """Steps per environment between two parameter updates of an actor (d_pull). Table H "Actor Pull Model Every N
    Steps"."""

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
        return max(1, self.trained_transitions(steps) // (self.batch_size_sequences * self.sequence_steps))

    def held_windows(self, num_envs: int) -> int:
        """Return the number of windows in memory.

        They are kept until their last use, or wait until a batch is full. One more is being written, and the one before
        it provides the burn-in.
        """
        return self.replay_span_windows + math.ceil(self.batch_size_sequences / num_envs) + 2

    @property
    def settled_windows(self) -> int:
        """Number of windows after which every window brings the same number of updates."""
        return self.replay_span_windows + 2

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "data", "batch_size_sequences", "sequence_steps", "replay", "replay_span_windows")
        yield from positive(self, "data", "push_every_updates", "pull_every_steps")
        yield from not_negative(self, "data", "burn_in_steps")
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


DataConfig = ExactReplayConfig
