"""DQN's policy (π, ε-greedy) and loss (temporal difference against a target network), by Mnih et al. 2015."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gdi import policy
from gdi.algorithms.base import Algorithm, Loss, Transitions
from gdi.algorithms.masked_mean import MaskedMean
from gdi.config import DQNConfig
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.rewards import clip_rewards


class Head(NamedTuple):
    """Action values (Q); the network's output has the one family on axis 2."""

    q: Tensor  # [T, B, 1, A]


class Heads(nn.Module):
    """A linear layer for the action values (Q), [..., actions]."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.q = nn.Linear(features, num_actions)

    def forward(self, x: Tensor) -> Head:
        return Head(self.q(x))


class NStep(NamedTuple):
    """The part of n-step targets that needs no network, each [B]."""

    returns: Tensor  # Σ_{k<m} γ^k r_k, with m the row where the target bootstraps
    discount: Tensor  # γ^m, 0 after a termination
    row: Tensor  # m, int64: n, or the row after the first end of an episode


def n_step(reward: Tensor, terminated: Tensor, truncated: Tensor, discount: float) -> NStep:
    """Return the n-step returns of the first row; all arguments are [n, B].

    A termination within n steps ends the sum without a bootstrap. A truncation within n steps bootstraps at that row.
    """
    if len(reward) == 1:  # the usual case, at a fraction of the cost
        return NStep(reward[0], discount * ~terminated[0], torch.ones_like(terminated[0], dtype=torch.int64))
    alive = torch.ones_like(reward[0])  # 1 until an episode ends
    returns, factor = torch.zeros_like(reward[0]), torch.ones_like(reward[0])
    bootstrap, row = torch.ones_like(reward[0]), torch.zeros_like(terminated[0], dtype=torch.int64)
    for r, end, cut in zip(reward, terminated, truncated, strict=True):
        returns = returns + alive * factor * r
        factor = torch.where(alive > 0, factor * discount, factor)
        bootstrap = torch.where((alive > 0) & end, 0.0, bootstrap)
        row = row + (alive > 0)
        alive = alive * ~(end | cut)
    return NStep(returns, bootstrap * factor, row)


class DQN(Algorithm):
    """Q-learning: the loss is ℓ(y − Q(s, a)) with y = Σ γ^k r_k + γ^m max_a Q⁻(s_m, a).

    Q⁻ is the target network.
    """

    def __init__(self, config: DQNConfig) -> None:
        self._config = config
        self.rows = "first"
        self.target_period_updates = config.target_period_updates

    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        return Heads(features, num_actions)

    def log_probs(self, head: Head, seen: Seen) -> Tensor:
        """Return the log-probabilities of the ε-greedy policy over the valid actions, [T, B, A].

        log(ε/|A| + (1 − ε)·1{a = argmax Q}), where ε is the one component of λ. A NaN or infinite Q gives NaN, so that
        the player reports the divergence.
        """
        q, epsilon, mask = head.q.squeeze(2), seen.index, seen.action_mask  # [T, B, A], [T, B, 1], [T, B, A or 0]
        best = policy.filled(q, mask, -torch.inf).argmax(-1, keepdim=True)
        greedy = torch.zeros_like(q).scatter_(-1, best, 1.0)
        broken = (q * 0.0).sum(-1, keepdim=True)  # 0, or NaN if a Q is NaN or infinite
        explored = epsilon / (mask.sum(-1, keepdim=True) if mask.shape[-1] else q.shape[-1])
        return policy.filled(torch.log(explored + (1 - epsilon) * greedy), mask, -torch.inf) + broken

    def value(self, head: Head, seen: Seen) -> Tensor:
        """Return max Q over the valid actions, [T, B]."""
        return policy.filled(head.q.squeeze(2), seen.action_mask, -torch.inf).max(-1).values

    def bootstrap_row(self, data: Transitions) -> Tensor | None:
        return self._n_step(data).row if self._config.n_steps > 1 else None

    def _n_step(self, data: Transitions) -> NStep:
        reward = clip_rewards(data.reward, self._config.reward_clip)
        return n_step(reward, data.terminated, data.truncated, self._config.discount)

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        assert data.target is not None
        mean = MaskedMean(data.mask[:1])  # only the first row is trained; the later ones serve its target
        found = self._n_step(data)
        q = online.head.q.squeeze(2)  # [1, B, A]
        taken = q.gather(-1, data.action[:1].unsqueeze(-1)).squeeze(-1)  # [1, B]
        with torch.no_grad():
            best = self._best(data.target.head.q[0].squeeze(1), data.seen.action_mask, found.row)  # [1, B]
            y = found.returns + found.discount * best
        per_step = F.huber_loss if self._config.loss == "huber" else _half_square
        loss = mean(per_step(taken, y, reduction="none"))
        metrics = {"loss/td": loss}
        if health:
            with torch.no_grad():
                metrics |= {
                    "value/td_error": mean((y - taken).abs()),
                    "value/mean": mean(policy.filled(q, data.seen.action_mask[:1], -torch.inf).max(-1).values),
                    "value/target_mean": mean(y),
                    "policy/epsilon": mean(data.seen.index[:1, :, 0]),
                }
        return Loss(loss, metrics)

    def _best(self, q: Tensor, mask: Tensor, row: Tensor) -> Tensor:
        """Return the best Q of a valid action at each column's bootstrap row: q [B, A], mask [T + 1, B, A or 0]."""
        if mask.shape[-1]:
            q = policy.filled(q, mask[row, torch.arange(len(row), device=row.device)], -torch.inf)
        return q.max(-1).values.unsqueeze(0)


def _half_square(value: Tensor, target: Tensor, reduction: str) -> Tensor:
    return 0.5 * F.mse_loss(value, target, reduction=reduction)
