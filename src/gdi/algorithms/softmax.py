"""The softmax actor-critic of PPO and IMPALA: logits, values (V), and π = Softmax(logits/τ)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from gdi import policy
from gdi.networks import Seen


class Head(NamedTuple):
    """Logits and values (V); the network's output has the one family on axis 2."""

    logits: Tensor  # [T, B, 1, A]
    value: Tensor  # [T, B, 1]


class Heads(nn.Module):
    """Two linear layers: one for the logits, [..., actions], and one for the value (V), [...]."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.logits = nn.Linear(features, num_actions)
        self.value = nn.Linear(features, 1)
        # The logits start small, so the first policies are nearly uniform.
        nn.init.orthogonal_(self.logits.weight, 0.01)
        nn.init.zeros_(self.logits.bias)
        nn.init.orthogonal_(self.value.weight, 1.0)
        nn.init.zeros_(self.value.bias)

    def forward(self, x: Tensor) -> Head:
        return Head(self.logits(x), self.value(x).squeeze(-1))


def log_probs(head: Head, seen: Seen) -> Tensor:
    """Return log Softmax(logits · u) over the valid actions, [T, B, A], where u = 1/τ is the first component of λ."""
    return policy.log_softmax(head.logits.squeeze(2) * seen.index[..., :1], seen.action_mask)


def entropy_cost(seen: Seen) -> Tensor:
    """Return the weight of the entropy bonus, [T, B], which is the second component of λ."""
    return seen.index[..., 1]
