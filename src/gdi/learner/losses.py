"""The losses of T: policy gradient, V-trace and ReTrace regression, auxiliary tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gdi import policy
from gdi.config import LearnerConfig, NetworkConfig
from gdi.networks.agent import AgentNetwork, AgentOutput
from gdi.networks.dynamics import Dynamics
from gdi.returns import policy_gradient_advantage, retrace, sarsa_next_value, vtrace
from gdi.rewards import shape_rewards


@dataclass(frozen=True)
class Trained:
    """The trained steps of a batch as tensors, each [T, B, ...]; see ``gdi.types`` for the time convention."""

    action: Tensor
    reward: Tensor
    terminated: Tensor
    valid: Tensor
    behavior_prob: Tensor
    index: Tensor


class Losses(NamedTuple):
    """The scaled sum to descend, and what is worth watching (detached tensors, not yet numbers)."""

    total: Tensor
    metrics: dict[str, Tensor]


def centred_q(advantage: Tensor, value: Tensor, log_pi: Tensor, *, stop_gradient: bool) -> Tensor:
    """Q = (A − E_π[A]) + V (Equ: i3 casa equ, Equ: h3 casa equ), [..., F, A].

    π is the mixture under the stored λ. With ``stop_gradient`` neither π nor V passes gradient, so the Q loss trains A.
    advantage [..., F, A], value [..., F], log_pi [..., A].
    """
    pi = log_pi.exp().unsqueeze(-2)
    if stop_gradient:
        pi, value = pi.detach(), value.detach()
    return advantage - (pi * advantage).sum(-1, keepdim=True) + value.unsqueeze(-1)


def taken(per_action: Tensor, action: Tensor) -> Tensor:
    """The entry of the action taken: per_action [T, B, F, A], action [T, B] -> [T, B, F]."""
    return per_action.gather(-1, action[..., None, None].expand(*per_action.shape[:-1], 1)).squeeze(-1)


def gdi_losses(
    network: AgentNetwork,
    output: AgentOutput,
    data: Trained,
    config: LearnerConfig,
    rewards: NetworkConfig,
    *,
    health: bool = True,
) -> Losses:
    """ξ·½(vs − V)² + α·½(qs − Q)² − β·ρ(r + γ·vs' − V)·log π, each a mean over valid steps, summed over families.

    output holds T + 1 steps, the last one the bootstrap. ``health`` adds the metrics that only watch.
    """
    advantage, value = output.advantage[:-1], output.value  # [T, B, F, A], [T + 1, B, F]
    valid = data.valid.float().unsqueeze(-1)  # [T, B, 1]
    num_valid = valid.sum().clamp(min=1.0)

    log_pi = policy.family_log_probs(advantage, data.index)  # [T, B, F, A], equal in value for all families
    log_pi_taken = taken(log_pi, data.action)  # [T, B, F]
    mixture = log_pi[..., 0, :] if config.q_stop_gradient else policy.log_probs(advantage, data.index)
    q_taken = taken(
        centred_q(advantage, value[:-1], mixture, stop_gradient=config.q_stop_gradient), data.action
    )  # [T, B, F]

    with torch.no_grad():
        ratio = log_pi_taken[..., :1].exp() / data.behavior_prob.unsqueeze(-1) * valid  # [T, B, 1]
        reward = shape_rewards(data.reward, rewards.reward_shapes, rewards.reward_scales)  # [T, B, F]
        discount = (config.discount * (~data.terminated).float()).unsqueeze(-1)  # [T, B, 1]
        v_target = vtrace(value, reward, discount, ratio, rho_bar=config.rho_bar, c_bar=config.c_bar)
        if config.retrace_form == "expected":
            next_value = value[1:]
        else:
            next_value = sarsa_next_value(q_taken, value, data.valid.unsqueeze(-1))
        q_target = retrace(q_taken, next_value, reward, discount, ratio, c_bar=config.c_bar)
        gain = policy_gradient_advantage(value, v_target, reward, discount, ratio, rho_bar=config.rho_bar)

    def mean(per_step: Tensor) -> Tensor:
        """[T, B, F] -> scalar: mean over valid steps, sum over families."""
        return (per_step * valid).sum() / num_valid

    v_loss = mean(0.5 * (v_target[:-1] - value[:-1]).pow(2))
    q_loss = mean(0.5 * (q_target - q_taken).pow(2))
    policy_loss = mean(-gain * log_pi_taken)
    total = config.v_loss_scale * v_loss + config.q_loss_scale * q_loss + config.policy_loss_scale * policy_loss
    metrics = {"loss/v": v_loss, "loss/q": q_loss, "loss/policy": policy_loss}

    if network.tasks():

        def auxiliary(task: Callable[[Dynamics, Tensor], Tensor]) -> Tensor:
            """Sum over encoders of a task's mean loss."""
            pairs = zip(network.tasks(), output.features, strict=True)
            return torch.stack([mean(task(dynamics, phi).unsqueeze(-1)) for dynamics, phi in pairs]).sum()

        forward_loss = auxiliary(lambda dynamics, phi: dynamics.forward_loss(phi, data.action))
        inverse_loss = auxiliary(lambda dynamics, phi: dynamics.inverse_loss(phi, data.action))
        total = total + config.forward_dynamics_scale * forward_loss + config.inverse_dynamics_scale * inverse_loss
        metrics |= {"loss/forward_dynamics": forward_loss, "loss/inverse_dynamics": inverse_loss}

    metrics["loss/total"] = total
    if not health:
        return Losses(total, {name: value.detach() for name, value in metrics.items()})
    with torch.no_grad():
        entropy = policy.entropy(log_pi[..., 0, :]).unsqueeze(-1)
        centred = advantage - advantage.mean(-1, keepdim=True)
        spread = centred.pow(2).mean(-1).sqrt().mean(-1, keepdim=True)  # torch.std is slow on short rows
        change = (value[1:] - value[:-1]).abs() * (~data.terminated).float().unsqueeze(-1)  # [T, B, F]
        metrics |= {
            "policy/entropy": mean(entropy),
            "policy/ratio_mean": mean(ratio),
            "policy/ratio_clip_fraction": mean((ratio > config.rho_bar).float()),
            "policy/advantage_scale": mean(spread),
            "value/mean": mean(value[:-1]) / value.shape[-1],
            "value/target_mean": mean(v_target[:-1]) / value.shape[-1],
            "value/change": mean(change) / value.shape[-1],
        }
    return Losses(total, {name: value.detach() for name, value in metrics.items()})
