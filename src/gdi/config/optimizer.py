"""How a gradient becomes an update: AdamW, its schedules, and when to give up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdi.config.checks import fraction, not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with linear warm-up and linear annealing."""

    learning_rate: float = 5e-4
    """Peak learning rate. Table H "Learning Rate"."""
    warmup_updates: int = 4000
    """Updates in which the learning rate rises from 0 to its peak, at most a quarter of the run. Then it falls to 0.
    Table H "Warmup Steps"."""
    weight_decay: float = 0.01
    """Weight decay at the start, which falls linearly to 0. Biases have none. Table H "Weight Decay Rate"."""
    adam_beta_1: float = 0.9
    """Decay rate of the first moment (β1). Table H "AdamW β1"."""
    adam_beta_2: float = 0.98
    """Decay rate of the second moment (β2). Table H "AdamW β2"."""
    adam_epsilon: float = 1e-6
    """Constant in the denominator of the update (ε). Table H "AdamW ε"."""
    clip_norm: float = 50.0
    """Largest gradient norm; longer gradients are scaled down to it. Table H "AdamW Clip Norm"."""
    max_nonfinite_updates: int = 5
    """Number of NaN or infinite losses or gradients in a row that stops the run."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "optimizer", "learning_rate", "adam_epsilon", "clip_norm", "max_nonfinite_updates")
        yield from not_negative(self, "optimizer", "warmup_updates", "weight_decay")
        yield from fraction(self, "optimizer", "adam_beta_1", "adam_beta_2")

    def planned_warmup_updates(self, planned_updates: int) -> int:
        """Return the number of updates until the peak rate, at most a quarter of the run's updates.

        The paper's 4,000 are a fifth of its run. In a run with fewer updates, the rate would rise until the end.
        """
        return min(self.warmup_updates, planned_updates // 4)
