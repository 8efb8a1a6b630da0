"""The interface of an algorithm: the policy (π) and the loss (of T), independent of where they run.

A new algorithm implements ``heads``, ``log_probs`` and ``loss``. The other methods have defaults here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from torch import Tensor, nn

from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.types import Array, Batch, Window


class Transitions(NamedTuple):
    """The T trained steps of a batch, in the time convention of ``gdi.types``."""

    seen: Seen  # T + 1 rows
    action: Tensor  # [T, B] int64
    reward: Tensor  # [T, B], raw
    terminated: Tensor  # [T, B] bool
    truncated: Tensor  # [T, B] bool
    mask: Tensor  # [T, B] bool: the steps to train
    behavior_prob: Tensor  # [T, B], μ(a|s) as acted
    extras: Mapping[str, Tensor] = {}  # by name, [T + 1, B]: what ``annotate`` and ``prepare`` computed
    target: AgentOutput | None = None  # of the target network at each column's bootstrap row, [1, B, ...]


class Loss(NamedTuple):
    """The loss to minimize, reduced over the masked steps, and metrics to log, as tensors."""

    total: Tensor
    metrics: dict[str, Tensor]


class Algorithm(ABC):
    """The policy (π) and the loss (of T) of one family of systems.

    A batch may be split into chunks, which are trained in turn or in parallel. With ``reduction`` "mean", a loss is a
    mean over masked steps, and a chunk's gradient is weighted by its share of them. With "sum", gradients are added.
    """

    reduction: Literal["mean", "sum"] = "mean"
    rows: Literal["all", "first"] = "all"  # rows of a slice that the network sees in training
    target_period_updates: int = 0  # 0: no target network
    dense_as_convolution: bool = False  # True: faster with many images, and rounded differently

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

    def value(self, head: Any, seen: Seen) -> Tensor | None:
        """Return V, [T, B], for pictures alone: by default the mean of ``head.value`` over families, if it exists."""
        value: Tensor | None = getattr(head, "value", None)
        return None if value is None else value.mean(2)

    def record(self, head: Any) -> dict[str, Tensor]:
        """Return notes to take of every acted step, by name, each [T, B]; none by default."""
        return {}

    def annotate(self, window: Window) -> dict[str, Array]:
        """Return the extras of a finished window from the notes in it, each [L + 1, B]. It runs once, at the actor."""
        return window.extras

    def prepare(self, batch: Batch) -> Batch:
        """Return the batch as the loss needs it; the argument is the whole batch, before it is split into chunks."""
        return batch

    def bootstrap_row(self, data: Transitions) -> Tensor | None:
        """Return the row of each column at which its target bootstraps, [B]; None, the default, is the last one."""
        return None

    def initialize_torso(self, torso: nn.Module) -> None:
        """Change the initial values of a torso's layers; by default the torso keeps its own."""
        return

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        """Return the previous reward as the recurrent core receives it; by default it is unchanged."""
        return reward
