"""X: how acted steps become training batches, and how many updates a run will make of them."""

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
    """Each sequence is trained exactly ``replay`` times, and then dropped."""

    kind: ClassVar[str] = "exact"

    batch_size_sequences: int = 64
    """Sequences per update. Table H "Batch size"."""
    burn_in_steps: int = 40
    """Steps unrolled without gradient before the trained ones. Table H "Burn-in"."""
    sequence_steps: int = 80
    """Trained steps of a sequence. Table H "Seq-length"."""
    replay: int = 2
    """Exactly how often each sequence is trained. Table H "Replay"."""
    replay_span_windows: int = 2
    """The uses of a sequence are spread evenly over this many windows of acting; bounds the memory."""
    push_every_updates: int = 25
    """d_push. Table H "Learner Push Model Every N Steps"."""
    pull_every_steps: int = 64
    """d_pull, in steps of each environment. Table H "Actor Pull Model Every N Steps"."""

    @property
    def window_steps(self) -> int:
        """Steps of a stored sequence: burn-in and trained ones."""
        return self.burn_in_steps + self.sequence_steps

    def trained_transitions(self, steps: int) -> int:
        """Transitions that a run of so many steps trains, each counted as often as it is trained."""
        return steps * self.replay

    def planned_updates(self, steps: int) -> int:
        """Learner updates of a whole run, up to the few that resets add: transitions · replay / those of a batch.

        For the paper: 50M steps · 2 / (64 · 80) = 19,531.
        """
        return max(1, self.trained_transitions(steps) // (self.batch_size_sequences * self.sequence_steps))

    def held_windows(self, num_envs: int) -> int:
        """Windows in memory: kept until the last use, waiting for a batch to fill, being written, and the one before
        (for its burn-in)."""
        return self.replay_span_windows + math.ceil(self.batch_size_sequences / num_envs) + 2

    @property
    def settled_windows(self) -> int:
        """Windows after which every later one brings as many updates as the one before."""
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
