"""How a gradient becomes a step: AdamW, its schedules, and when to give up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdi.config.checks import fraction, not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with linear warm-up and linear anneal."""

    learning_rate: float = 5e-4
    """Peak rate. Table H "Learning Rate"."""
    warmup_updates: int = 4000
    """Linear from 0 to the peak, then linear to 0 at the last update; at most a quarter of them. Table H "Warmup
    Steps"."""
    weight_decay: float = 0.01
    """Annealed linearly to 0; not on biases. Table H "Weight Decay Rate"."""
    adam_beta_1: float = 0.9
    """Table H "AdamW β1"."""
    adam_beta_2: float = 0.98
    """Table H "AdamW β2"."""
    adam_epsilon: float = 1e-6
    """Table H "AdamW ε"."""
    clip_norm: float = 50.0
    """Global gradient norm. Table H "AdamW Clip Norm"."""
    max_nonfinite_updates: int = 5
    """This many non-finite losses or gradients in a row stop the run."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "optimizer", "learning_rate", "adam_epsilon", "clip_norm", "max_nonfinite_updates")
        yield from not_negative(self, "optimizer", "warmup_updates", "weight_decay")
        yield from fraction(self, "optimizer", "adam_beta_1", "adam_beta_2")

    def planned_warmup_updates(self, planned_updates: int) -> int:
        """Updates until the peak rate, at most a quarter of the run's.

        The paper's 4,000 are a fifth of its run. In a run shorter than them the rate would rise to the end.
        """
        return min(self.warmup_updates, planned_updates // 4)
