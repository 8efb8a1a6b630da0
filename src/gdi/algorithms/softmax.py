"""The softmax actor-critic that PPO and IMPALA share: logits and V, and π = Softmax(logits/τ)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gdi.networks import Seen


class Head(NamedTuple):
    """Logits and V; of the network with the one family on axis 2."""

    logits: Tensor  # [T, B, 1, A]
    value: Tensor  # [T, B, 1]


class Heads(nn.Module):
    """Logits [.., actions] and V [..], one linear layer each."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.logits = nn.Linear(features, num_actions)
        self.value = nn.Linear(features, 1)
        # Small logits at the start: the first policies are nearly uniform.
        nn.init.orthogonal_(self.logits.weight, 0.01)
        nn.init.zeros_(self.logits.bias)
        nn.init.orthogonal_(self.value.weight, 1.0)
        nn.init.zeros_(self.value.bias)

    def forward(self, x: Tensor) -> Head:
        return Head(self.logits(x), self.value(x).squeeze(-1))


def log_probs(head: Head, seen: Seen) -> Tensor:
    """log Softmax(logits · u) with u = 1/τ, the first component of λ: [T, B, A]."""
    log_pi: Tensor = torch.log_softmax(head.logits[:, :, 0] * seen.index[..., :1], dim=-1)
    return log_pi


def entropy_cost(seen: Seen) -> Tensor:
    """The weight of the entropy bonus, the second component of λ: [T, B]."""
    return seen.index[..., 1]


def clip_rewards(reward: Tensor, clip: float) -> Tensor:
    """Clip rewards to [−clip, clip]; 0 clips nothing."""
    return reward.clamp(-clip, clip) if clip else reward


class MaskedMean:
    """[T, B] -> scalar: the mean over trained steps."""

    def __init__(self, mask: Tensor) -> None:
        self.weight = mask.float()
        self.count = self.weight.sum().clamp(min=1.0)

    def __call__(self, per_step: Tensor) -> Tensor:
        return (per_step * self.weight).sum() / self.count
