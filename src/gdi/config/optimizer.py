"""How a gradient becomes a step: AdamW or RMSProp, their schedules, and when to give up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import fraction, not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class AdamWConfig:
    """AdamW with linear warm-up and, by default, linear anneal."""

    kind: ClassVar[str] = "adamw"

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
    """This many non-finite losses or gradients in a row stop the run."""
    schedule: Literal["linear", "constant"] = "linear"
    """Learning rate after the warm-up: linear to 0 at the last update, or constant."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "optimizer", "learning_rate", "adam_epsilon", "clip_norm", "max_nonfinite_updates")
        yield from not_negative(self, "optimizer", "warmup_updates", "weight_decay")
        yield from fraction(self, "optimizer", "adam_beta_1", "adam_beta_2")


@dataclass(frozen=True)
class RMSPropConfig:
    """RMSProp of the publications of DQN and IMPALA, with ε inside the root."""

    kind: ClassVar[str] = "rmsprop"
    warmup_updates: ClassVar[int] = 0

    learning_rate: float = 2.5e-4
    """Learning rate at the start."""
    decay: float = 0.95
    """Decay rate of the running means of the gradient and of its square."""
    epsilon: float = 0.01
    """Constant that is added to the mean square before the root (ε)."""
    momentum: float = 0.0
    """Momentum of the steps."""
    centered: bool = False
    """Subtract the squared mean of the gradient from its mean square."""
    clip_norm: float = math.inf
    """Largest gradient norm; longer gradients are scaled down to it."""
    max_nonfinite_updates: int = 5
    """This many non-finite losses or gradients in a row stop the run."""
    schedule: Literal["linear", "constant"] = "linear"
    """Learning rate after the start: linear to 0 at the last update, or constant."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "optimizer", "learning_rate", "epsilon", "clip_norm", "max_nonfinite_updates")
        yield from fraction(self, "optimizer", "decay", "momentum")


OptimizerConfig = AdamWConfig | RMSPropConfig


def planned_warmup_updates(warmup_updates: int, planned_updates: int) -> int:
    """Return the updates until the peak rate, which are at most a quarter of the run's.

    The paper's 4,000 are a fifth of its run. In a run shorter than them the rate would rise to the end.
    """
    return min(warmup_updates, planned_updates // 4)
