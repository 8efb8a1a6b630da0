"""T, the operator that learns: one dataclass per algorithm. A user's own has ``knobs`` and ``build(config)``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import fraction, not_negative, positive
from gdi.config.index_space import GDISpace, axes_of

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class GDIConfig:
    """GDI's losses and targets: V-trace, ReTrace and the policy gradient of the mixture."""

    kind: ClassVar[str] = "gdi"
    knobs: ClassVar[tuple[str, ...]] = tuple(axes_of(GDISpace()))

    reward_shapes: tuple[Literal["log", "root", "none"], ...] = ("log",)
    """Reward shaping of each family. Table H "GDI-I3 Reward Shape", "GDI-H3 Reward Shape 1", "... 2"."""
    reward_scales: tuple[float, ...] = (1.0,)
    """Factor on each family's shaped reward; small networks and budgets want values of order 1."""
    discount: float = 0.997
    """γ. Table H "Discount"."""
    rho_bar: float = 1.05
    """ρ̄. Table H "Importance Sampling Clip ρ̄"."""
    c_bar: float = 1.05
    """c̄. Table H "Importance Sampling Clip c̄"."""
    retrace_form: Literal["expected", "sarsa"] = "expected"
    """Bootstrap of ReTrace: V(s') = E_π Q(s',·), or the printed Q(s', a')."""
    q_stop_gradient: bool = True
    """True: the Q loss trains A only (no gradient through π and V in Q); False: as printed."""
    v_loss_scale: float = 1.0
    """ξ. Table H "V-loss Scaling"."""
    q_loss_scale: float = 10.0
    """α. Table H "Q-loss Scaling"."""
    policy_loss_scale: float = 10.0
    """β. Table H "π-loss Scaling"."""
    forward_dynamics_scale: float = 0.1
    """Weight of the forward-dynamics task, 0 switches it off. Table H "Auxiliary Forward Dynamic Task"."""
    inverse_dynamics_scale: float = 0.1
    """Weight of the inverse-dynamics task, 0 switches it off. Table H "Auxiliary Inverse Dynamic Task"."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "learner", "rho_bar", "c_bar")
        yield from not_negative(self, "learner", "v_loss_scale", "q_loss_scale", "policy_loss_scale")
        yield from not_negative(self, "learner", "forward_dynamics_scale", "inverse_dynamics_scale")
        yield from fraction(self, "learner", "discount")
        families = config.network.families
        if len(self.reward_shapes) != families:
            yield f"--learner.reward-shapes needs one shape per family: {families}, not {len(self.reward_shapes)}."
        if len(self.reward_scales) != families or not all(scale > 0 for scale in self.reward_scales):
            yield (
                f"--learner.reward-scales needs one positive factor per family ({families}), not {self.reward_scales}."
            )

    def families_of(self, index: Mapping[str, float], families: int) -> frozenset[str]:
        """The families of θ_λ: those with weight in ε·π_{θ1} + (1 − ε)·π_{θ2} (equ: soft epsilon policy space)."""
        if families == 1:
            return frozenset({"θ"})
        weights = {"θ1": index["epsilon"], "θ2": 1.0 - index["epsilon"]}
        return frozenset(name for name, weight in weights.items() if weight > 0)


LearnerConfig = GDIConfig
