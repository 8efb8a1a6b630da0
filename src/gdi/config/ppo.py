"""Settings of PPO's loss (T): the clipped surrogate on advantages that are estimated once per window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gdi.config.checks import fraction, not_negative, positive
from gdi.config.data import ExactReplayConfig

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimization. The defaults are those of Schulman et al. 2017 for Atari."""

    kind: ClassVar[str] = "ppo"
    knobs: ClassVar[tuple[str, ...]] = ("inverse_tau", "entropy_cost")
    trains_at_once: ClassVar[bool] = True  # a window's uses are not spread over later windows

    discount: float = 0.99
    """Discount per step (γ)."""
    gae_lambda: float = 0.95
    """Decay of the generalized advantage estimate (λ of GAE)."""
    clip: float = 0.1
    """Clip on the probability ratio (ε): it counts within [1 - clip, 1 + clip]."""
    value_clip: float = 0.0
    """Largest change of V per update that counts, in the units of V. 0 means no clip."""
    value_loss_scale: float = 1.0
    """Weight of the value loss ½(V - target)²."""
    normalize_advantages: bool = True
    """Standardize the advantages of each minibatch."""
    reward_clip: float = 1.0
    """Largest absolute reward in the targets; larger ones are clipped. 0 means no clip."""

    def problems(self, config: Config) -> Iterator[str]:
        data, network = config.data, config.network
        yield from positive(self, "learner", "clip")
        yield from not_negative(self, "learner", "value_clip", "value_loss_scale", "reward_clip")
        yield from fraction(self, "learner", "discount")
        if not 0.0 <= self.gae_lambda <= 1.0:
            yield f"--learner.gae-lambda must be in [0, 1], not {self.gae_lambda}."
        if network.families != 1:
            yield f"--network.families {network.families}: this learner has one family; set it to 1."
        if not isinstance(data, ExactReplayConfig) or data.replay_span_windows != 1:
            yield "PPO trains each window at once and drops it: use --data exact with --data.replay-span-windows 1."
            return
        if data.burn_in_steps:
            yield f"--data.burn-in-steps {data.burn_in_steps}: PPO trains whole windows; set it to 0."
        slices = config.env.num_envs * data.sequence_steps // (data.slice_steps or data.sequence_steps)
        if slices % data.batch_size_sequences:
            yield (
                f"--data.batch-size-sequences {data.batch_size_sequences} does not divide the {slices} slices of a "
                f"window ({config.env.num_envs} environments x {data.sequence_steps} steps): choose a divisor."
            )

    def families_of(self, index: Mapping[str, float], families: int) -> frozenset[str]:
        """Return the one family of parameters, which serves every λ."""
        return frozenset({"θ"})
