"""Settings of DQN's loss (T): the temporal difference against a target network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import fraction, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class DQNConfig:
    """Q-learning with a target network. The defaults are those of Mnih et al. 2015."""

    kind: ClassVar[str] = "dqn"
    knobs: ClassVar[tuple[str, ...]] = ("epsilon",)

    discount: float = 0.99
    """Discount per step (γ)."""
    n_steps: int = 1
    """Number of rewards in a target before it bootstraps (n)."""
    target_period_updates: int = 10_000
    """Updates between two copies of the network to the target network."""
    loss: Literal["huber", "squared"] = "huber"
    """Loss of the temporal-difference error: Huber with δ = 1, or half of the square."""
    reward_clip: float = 1.0
    """Largest absolute reward in the targets; larger ones are clipped. 0 means no clip."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "learner", "n_steps", "target_period_updates")
        yield from fraction(self, "learner", "discount")
        if self.reward_clip < 0:
            yield f"--learner.reward-clip must be 0 or more, not {self.reward_clip}."
        if config.network.families != 1:
            yield f"--network.families {config.network.families}: this learner has one family; set it to 1."
        if config.network.lstm_units:
            yield (
                f"--network.lstm-units {config.network.lstm_units}: DQN trains single transitions, which have no "
                "recurrent state: set it to 0."
            )
        rows = config.data.slice_steps or config.data.sequence_steps
        if rows != self.n_steps:
            yield (
                f"--learner.n-steps {self.n_steps} needs slices of as many steps, not {rows}: "
                f"set --data.slice-steps {self.n_steps}."
            )

    def families_of(self, index: Mapping[str, float], families: int) -> frozenset[str]:
        """Return the one family of parameters, which serves every λ."""
        return frozenset({"θ"})
