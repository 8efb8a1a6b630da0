"""What an algorithm is: π and T of one family of systems, and nothing about where it runs.

A new algorithm writes ``heads``, ``log_probs`` and ``loss``; everything else has a default here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor, nn

from gdi.networks import AgentNetwork, AgentOutput, Seen


class Transitions(NamedTuple):
    """The trained steps of a batch, T of them; see ``gdi.types`` for the time convention."""

    seen: Seen  # T + 1 rows
    action: Tensor  # [T, B] int64
    reward: Tensor  # [T, B], raw
    terminated: Tensor  # [T, B] bool
    truncated: Tensor  # [T, B] bool
    mask: Tensor  # [T, B] bool: the steps to train
    behavior_prob: Tensor  # [T, B], μ(a|s) as acted


class Loss(NamedTuple):
    """The loss to descend, a mean over the masked steps, and what is worth watching (tensors, not yet numbers)."""

    total: Tensor
    metrics: dict[str, Tensor]


class Algorithm(ABC):
    """π and T of one family of systems.

    A batch may be cut into chunks, trained one by one or side by side, and their gradients weighted by their share of
    the masked steps. A loss must therefore be a mean over masked steps.
    """

    @abstractmethod
    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        """The layers behind an encoder; they return a NamedTuple of tensors, each [T, B, ...]."""

    @abstractmethod
    def log_probs(self, head: Any, seen: Seen) -> Tensor:
        """log π_{θ_λ}(·|s), [..., A]; ``head`` has its families on axis 2, and λ is ``seen.index``."""

    @abstractmethod
    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        """The loss of T. ``online`` has T + 1 rows, the last one the bootstrap; ``health`` adds metrics that watch."""

    def modules(self, encoders: int, features: int, num_actions: int) -> dict[str, nn.Module]:
        """Further trained layers, by name; none by default."""
        return {}

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        """The previous reward as the recurrent core sees it; as it is by default."""
        return reward
