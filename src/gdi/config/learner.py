"""Settings of the learner (T): one dataclass per algorithm. A user's class has ``knobs`` and ``build(config)``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import fraction, not_negative, positive
from gdi.config.dqn import DQNConfig
from gdi.config.impala import IMPALAConfig
from gdi.config.index_space import GDISpace, axes_of
from gdi.config.ppo import PPOConfig

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class GDIConfig:
    """Losses and targets of GDI, which are V-trace, ReTrace and the policy gradient of the mixture."""

    kind: ClassVar[str] = "gdi"
    knobs: ClassVar[tuple[str, ...]] = tuple(axes_of(GDISpace()))

    reward_shapes: tuple[Literal["log", "root", "none"], ...] = ("log",)
    """Reward shaping, one per family of parameters. Table H "GDI-I3 Reward Shape", "GDI-H3 Reward Shape 1", "... 2"."""
    reward_scales: tuple[float, ...] = (1.0,)
    """Factor on the shaped reward, one per family. Small networks and short runs need values around 1."""
    discount: float = 0.997
    """Discount of future rewards (γ). Table H "Discount"."""
    rho_bar: float = 1.05
    """Clip on the importance ratio π/μ in value targets and the policy gradient (ρ̄). Table H "Importance Sampling
    Clip ρ̄"."""
    c_bar: float = 1.05
    """Clip on the importance ratio π/μ in the traces of V-trace and ReTrace (c̄). Table H "Importance Sampling
    Clip c̄"."""
    retrace_form: Literal["expected", "sarsa"] = "expected"
    """Value from which ReTrace bootstraps: the expected one, V(s') = E_π Q(s',·), or Q(s', a') as the paper prints."""
    q_stop_gradient: bool = True
    """Train only the advantages (A) by the Q loss, without gradient through π and V. The paper prints it otherwise."""
    v_loss_scale: float = 1.0
    """Weight of the state-value loss (ξ). Table H "V-loss Scaling"."""
    q_loss_scale: float = 10.0
    """Weight of the action-value loss (α). Table H "Q-loss Scaling"."""
    policy_loss_scale: float = 10.0
    """Weight of the policy loss (β). Table H "π-loss Scaling"."""
    forward_dynamics_scale: float = 0.1
    """Weight of the forward-dynamics task; 0 turns it off. Table H "Auxiliary Forward Dynamic Task"."""
    inverse_dynamics_scale: float = 0.1
    """Weight of the inverse-dynamics task; 0 turns it off. Table H "Auxiliary Inverse Dynamic Task"."""

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
        """Return the families of θ_λ that have weight in the mixture.

        ε·π_{θ1} + (1 − ε)·π_{θ2} (equ: soft epsilon policy space).
        """
        if families == 1:
            return frozenset({"θ"})
        weights = {"θ1": index["epsilon"], "θ2": 1.0 - index["epsilon"]}
        return frozenset(name for name, weight in weights.items() if weight > 0)


LearnerConfig = GDIConfig | DQNConfig | PPOConfig | IMPALAConfig
