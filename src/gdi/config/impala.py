"""Settings of IMPALA's loss (T): an actor-critic with V-trace targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import fraction, not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class IMPALAConfig:
    """V-trace actor-critic. The defaults are those of Espeholt et al. 2018 for Atari."""

    kind: ClassVar[str] = "impala"
    knobs: ClassVar[tuple[str, ...]] = ("inverse_tau", "entropy_cost")

    discount: float = 0.99
    """Discount per step (γ)."""
    rho_bar: float = 1.0
    """Clip on the importance ratio π/μ in the value targets and the policy gradient (ρ̄)."""
    c_bar: float = 1.0
    """Clip on the importance ratio π/μ in the traces (c̄)."""
    value_loss_scale: float = 0.5
    """Weight of the value loss ½(v - V)²."""
    reduction: Literal["sum", "mean"] = "sum"
    """How the losses of the steps of a batch are combined. The published learning rates are for the sum."""
    reward_clip: float = 1.0
    """Largest absolute reward in the targets; larger ones are clipped. 0 means no clip."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "learner", "rho_bar", "c_bar")
        yield from not_negative(self, "learner", "value_loss_scale", "reward_clip")
        yield from fraction(self, "learner", "discount")
        if config.network.families != 1:
            yield f"--network.families {config.network.families}: this learner has one family; set it to 1."

    def families_of(self, index: Mapping[str, float], families: int) -> frozenset[str]:
        """Return the one family of parameters, which serves every λ."""
        return frozenset({"θ"})
