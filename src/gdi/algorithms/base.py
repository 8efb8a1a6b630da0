"""The interface of an algorithm: the policy (π) and the loss (of T), independent of where they run.

A new algorithm implements ``heads``, ``log_probs`` and ``loss``. The other methods have defaults here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor, nn

from gdi.networks import AgentNetwork, AgentOutput, Seen


class Transitions(NamedTuple):
    """The T trained steps of a batch, in the time convention of ``gdi.types``."""

    seen: Seen  # T + 1 rows
    action: Tensor  # [T, B] int64
    reward: Tensor  # [T, B], raw
    terminated: Tensor  # [T, B] bool
    truncated: Tensor  # [T, B] bool
    mask: Tensor  # [T, B] bool: the steps to train
    behavior_prob: Tensor  # [T, B], μ(a|s) as acted


class Loss(NamedTuple):
    """The loss to minimize, a mean over the masked steps, and the metrics as tensors."""

    total: Tensor
    metrics: dict[str, Tensor]


class Algorithm(ABC):
    """The policy (π) and the loss (of T) of one family of systems.

    The learner may split a batch into chunks, which it trains one by one or in parallel. It weights the gradient of a
    chunk by the chunk's share of the masked steps. A loss must therefore be a mean over masked steps.
    """

    @abstractmethod
    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        """Return the layers that follow an encoder; they output a NamedTuple of tensors, each [T, B, ...]."""

    @abstractmethod
    def log_probs(self, head: Any, seen: Seen) -> Tensor:
        """Return the log-probability of every action, log π_{θ_λ}(·|s), [..., A].

        ``head`` has the families on axis 2, and ``seen.index`` is λ.
        """

    @abstractmethod
    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        """Return the loss that T minimizes.

        ``online`` has T + 1 rows, and the last one is the bootstrap. ``health`` adds metrics that do not affect
        training.
        """

    def modules(self, encoders: int, features: int, num_actions: int) -> dict[str, nn.Module]:
        """Return further trained layers by name; there are none by default."""
        return {}

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        """Return the previous reward as the recurrent core receives it; by default it is unchanged."""
        return reward
