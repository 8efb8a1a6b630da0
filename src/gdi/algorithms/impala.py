"""IMPALA's policy (π, a softmax) and loss (an actor-critic with V-trace targets), by Espeholt et al. 2018."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gdi import policy
from gdi.algorithms.base import Algorithm, Loss, Transitions
from gdi.algorithms.masked_mean import MaskedMean
from gdi.algorithms.softmax import Head, Heads, entropy_cost, log_probs
from gdi.config import IMPALAConfig
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.returns import policy_gradient_advantage, vtrace
from gdi.rewards import clip_rewards


class IMPALA(Algorithm):
    """V-trace actor-critic: −ρ(r + γv' − V)·log π + c_v·½(v − V)² − c_H·H[π].

    The loss is summed over the steps of a batch, or their mean, as the config says.
    """

    def __init__(self, config: IMPALAConfig) -> None:
        self._config = config
        self.reduction = config.reduction

    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        return Heads(features, num_actions)

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        return clip_rewards(reward, self._config.reward_clip)

    def log_probs(self, head: Head, seen: Seen) -> Tensor:
        return log_probs(head, seen)

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        config, mean = self._config, MaskedMean(data.mask)
        value = online.head.value[..., 0]  # [T + 1, B]
        log_pi = log_probs(online.head, data.seen)[:-1]  # [T, B, A]
        log_pi_taken = log_pi.gather(-1, data.action.unsqueeze(-1)).squeeze(-1)
        entropy = policy.entropy(log_pi, data.seen.action_mask[:-1])
        with torch.no_grad():
            # A step that is not a transition has ratio 0, so no trace crosses it.
            ratio = (log_pi_taken.exp() / data.behavior_prob).where(data.mask, 0.0)
            reward = clip_rewards(data.reward, config.reward_clip)
            discount = config.discount * (~data.terminated).float()
            target = vtrace(value, reward, discount, ratio, rho_bar=config.rho_bar, c_bar=config.c_bar)
            gain = policy_gradient_advantage(value, target, reward, discount, ratio, rho_bar=config.rho_bar)
        policy_loss = mean(-gain * log_pi_taken)
        value_loss = mean(0.5 * (target[:-1] - value[:-1]).pow(2))
        bonus = mean(entropy_cost(data.seen)[:-1] * entropy)
        total = policy_loss + config.value_loss_scale * value_loss - bonus
        metrics = {"loss/policy": policy_loss, "loss/v": value_loss, "loss/entropy_bonus": bonus}
        if health:
            metrics |= {
                "policy/entropy": mean(entropy),
                "policy/ratio_mean": mean(ratio),
                "policy/ratio_clip_fraction": mean((ratio > config.rho_bar).float()),
                "value/mean": mean(value[:-1]),
                "value/target_mean": mean(target[:-1]),
            }
        return Loss(total * mean.count if config.reduction == "sum" else total, metrics)
