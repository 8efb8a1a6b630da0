"""PPO's policy (π, a softmax) and loss (the clipped surrogate), by Schulman et al. 2017.

The advantages are estimated once per window, where it was acted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gdi import policy
from gdi.algorithms.base import Algorithm, Loss, Transitions
from gdi.algorithms.masked_mean import MaskedMean
from gdi.algorithms.softmax import Head, Heads, entropy_cost, log_probs
from gdi.config import PPOConfig
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.networks.torsos import init_orthogonal
from gdi.rewards import clip_rewards
from gdi.types import Array, Batch, Window


def gae(value: Array, window: Window, reward: Array, discount: float, decay: float) -> Array:
    """Return the generalized advantage estimates (GAE), [L, B].

    Â_t = δ_t + γλ·Â_{t+1} with δ_t = r_t + γV_{t+1} − V_t.

    A termination stops the bootstrap. Any end of an episode stops the sum, and so does the end of the step budget.
    ``value`` is [L + 1, B], and ``reward`` is [L, B].
    """
    future = discount * ~window.terminated
    delta = reward + future * value[1:] - value[:-1]
    continues = ~window.truncated
    continues[:-1] &= window.valid[1:]
    carry = future * decay * continues
    advantage = np.zeros_like(delta)
    last = np.zeros_like(delta[0])
    for t in reversed(range(len(delta))):
        last = delta[t] + carry[t] * last
        advantage[t] = last
    return advantage


def clipped_surrogate(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """Return min(ρÂ, clip(ρ, 1 − ε, 1 + ε)Â).

    A ratio beyond the clip gains nothing more.
    """
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


class PPO(Algorithm):
    """Proximal policy optimization: −min(ρÂ, clip(ρ)Â) + c_v·½(V − V_target)² − c_H·H[π].

    The loss is a mean over the steps of a minibatch.
    """

    dense_as_convolution = True

    def __init__(self, config: PPOConfig, *, by_transition: bool) -> None:
        """``by_transition``: minibatches are single steps, so the network does not need the bootstrap row."""
        self._config = config
        self.rows = "first" if by_transition else "all"

    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        return Heads(features, num_actions)

    def initialize_torso(self, torso: nn.Module) -> None:
        """Initialize orthogonally, as the released code does."""
        init_orthogonal(torso)

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        return clip_rewards(reward, self._config.reward_clip)

    def log_probs(self, head: Head, seen: Seen) -> Tensor:
        return log_probs(head, seen)

    def record(self, head: Head) -> dict[str, Tensor]:
        """Return V as acted."""
        return {"value": head.value.squeeze(-1)}

    def annotate(self, window: Window) -> dict[str, Array]:
        """Return V as acted, and the advantages from it."""
        config, value = self._config, window.extras["value"]
        clip = config.reward_clip or np.inf
        advantage = np.zeros_like(value)
        advantage[:-1] = gae(value, window, window.reward.clip(-clip, clip), config.discount, config.gae_lambda)
        return {"value": value, "advantage": advantage}

    def prepare(self, batch: Batch) -> Batch:
        """Return the minibatch with V's targets, and with advantages standardized over its trained steps."""
        advantage = batch.extras["advantage"]
        extras = {**batch.extras, "value_target": advantage + batch.extras["value"]}
        if self._config.normalize_advantages:
            trained = advantage[:-1][batch.valid]
            if trained.size > 1:
                extras["advantage"] = ((advantage - trained.mean()) / (trained.std(ddof=1) + 1e-8)).astype(np.float32)
        return replace(batch, extras=extras)

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        config, mean, steps = self._config, MaskedMean(data.mask), len(data.action)
        seen = Seen(*(x[:steps] for x in data.seen))
        head = Head(*(x[:steps] for x in online.head))
        value = head.value.squeeze(-1)
        log_pi = log_probs(head, seen)
        log_pi_taken = log_pi.gather(-1, data.action.unsqueeze(-1)).squeeze(-1)
        entropy = policy.entropy(log_pi, seen.action_mask)
        # A step that is not a transition may have any probability. Its ratio is set to 1, and it is not trained.
        log_ratio = (log_pi_taken - data.behavior_prob.log()).masked_fill(~data.mask, 0.0)
        ratio = log_ratio.exp()
        policy_loss = mean(-clipped_surrogate(ratio, data.extras["advantage"][:steps], config.clip))
        value_loss = mean(self._value_loss(value, data.extras["value"][:steps], data.extras["value_target"][:steps]))
        bonus = mean(entropy_cost(seen) * entropy)
        total = policy_loss + config.value_loss_scale * value_loss - bonus
        metrics = {"loss/policy": policy_loss, "loss/v": value_loss, "loss/entropy_bonus": bonus}
        if health:
            metrics |= self._health(log_ratio.detach(), entropy, value, data, mean)
        return Loss(total, metrics)

    def _value_loss(self, value: Tensor, old: Tensor, target: Tensor) -> Tensor:
        """Return ½(V − target)² per step.

        With a value clip, it is at least the same loss of a V that stays near the V that acted.
        """
        loss = 0.5 * F.mse_loss(value, target, reduction="none")
        if not self._config.value_clip:
            return loss
        near = old + (value - old).clamp(-self._config.value_clip, self._config.value_clip)
        return torch.maximum(loss, 0.5 * (near - target).pow(2))

    def _health(
        self, log_ratio: Tensor, entropy: Tensor, value: Tensor, data: Transitions, mean: MaskedMean
    ) -> dict[str, Tensor]:
        """Return entropy, ratios, clip fraction, KL(μ‖π), and the share of the targets' variance that V explains."""
        with torch.no_grad():
            ratio = log_ratio.exp()
            target = data.extras["value_target"][: len(value)]
            error, center = mean((target - value).pow(2)), mean(target)
            variance = mean((target - center).pow(2))
            return {
                "policy/entropy": mean(entropy),
                "policy/ratio_mean": mean(ratio),
                "policy/ratio_clip_fraction": mean(((ratio - 1).abs() > self._config.clip).float()),
                "policy/kl": mean(ratio - 1 - log_ratio),
                "value/mean": mean(value),
                "value/target_mean": center,
                "value/explained_variance": 1 - error / variance.clamp(min=1e-8),
            }
