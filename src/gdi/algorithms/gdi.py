"""GDI's policy (π, a mixture of two softmaxes) and loss (V-trace, ReTrace and policy gradient)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gdi import policy
from gdi.algorithms.base import Algorithm, Loss, Transitions
from gdi.algorithms.masked_mean import MaskedMean
from gdi.config import GDIConfig
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.networks.dynamics import Dynamics
from gdi.returns import policy_gradient_advantage, retrace, sarsa_next_value, vtrace
from gdi.rewards import SHAPES, shape_rewards


class Head(NamedTuple):
    """Advantages (A) and values (V); the network's output has the families (F) on axis 2.

    A family is one set of heads with its own reward shaping. GDI-I has one, and GDI-H has two.
    """

    advantage: Tensor  # [T, B, F, A]
    value: Tensor  # [T, B, F]


class Heads(nn.Module):
    """Two linear layers: one for the advantages (A), [..., actions], and one for the value (V), [...]."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.advantage = nn.Linear(features, num_actions)
        self.value = nn.Linear(features, 1)
        # Advantages start equal, so the first policies are uniform at every temperature.
        nn.init.zeros_(self.advantage.weight)
        nn.init.zeros_(self.advantage.bias)

    def forward(self, x: Tensor) -> Head:
        return Head(self.advantage(x), self.value(x).squeeze(-1))


class Estimates(NamedTuple):
    """The network's estimates and their targets without gradient, each [T, B, F] unless noted."""

    log_pi: Tensor  # [T, B, F, A], equal in value for all families
    log_pi_taken: Tensor
    q_taken: Tensor
    ratio: Tensor  # [T, B, 1], π/μ, 0 where not trained
    v_target: Tensor  # [T + 1, B, F]
    q_target: Tensor
    gain: Tensor  # ρ(r + γ·vs' − V), the advantage of the policy gradient


def centered_q(advantage: Tensor, value: Tensor, log_pi: Tensor, *, stop_gradient: bool) -> Tensor:
    """Combine advantages and values into action values.

    Q = (A − E_π[A]) + V (Equ: i3 casa equ, Equ: h3 casa equ).
    advantage [..., F, A], value [..., F], log_pi [..., A] -> [..., F, A].
    π is the mixture under the stored λ. With ``stop_gradient`` neither π nor V passes gradient, so the Q loss trains
    only A.
    """
    pi = log_pi.exp().unsqueeze(-2)
    if stop_gradient:
        pi, value = pi.detach(), value.detach()
    return advantage - (pi * advantage).sum(-1, keepdim=True) + value.unsqueeze(-1)


def gather_action(per_action: Tensor, action: Tensor) -> Tensor:
    """Pick the entry of the action taken: per_action [T, B, F, A], action [T, B] -> [T, B, F]."""
    return per_action.gather(-1, action[..., None, None].expand(*per_action.shape[:-1], 1)).squeeze(-1)


class GDI(Algorithm):
    """The paper's algorithm for one family of variables (GDI-I) or two (GDI-H)."""

    def __init__(self, config: GDIConfig) -> None:
        self._config = config

    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        return Heads(features, num_actions)

    def modules(self, encoders: int, features: int, num_actions: int) -> dict[str, nn.Module]:
        """Return the auxiliary tasks, one module per encoder, or nothing if both tasks are switched off."""
        if not (self._config.forward_dynamics_scale or self._config.inverse_dynamics_scale):
            return {}
        return {"dynamics": nn.ModuleList(Dynamics(features, num_actions) for _ in range(encoders))}

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        """Shape and scale the reward as the losses of this family do."""
        return self._config.reward_scales[family] * SHAPES[self._config.reward_shapes[family]](reward)

    def log_probs(self, head: Head, seen: Seen) -> Tensor:
        """Return the log-probabilities of the mixture of two softmaxes, [..., A].

        log(ε·Softmax(A1·u1) + (1 − ε)·Softmax(A2·u2)) (equ: soft epsilon policy space).
        """
        return policy.log_probs(head.advantage, seen.index, seen.action_mask)

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool = True) -> Loss:
        """Sum the losses of V, Q and π, and of the auxiliary tasks.

        ξ·½(V̂ − V)² + α·½(Q̂ − Q)² − β·ρ(r + γ·V̂' − V)·log π, where V̂ is the V-trace and Q̂ the ReTrace target.
        ξ, α and β are ``v_loss_scale``, ``q_loss_scale`` and ``policy_loss_scale``. Each term is a mean over the
        trained steps, summed over the families.
        """
        config, value = self._config, online.head.value
        mean = MaskedMean(data.mask.unsqueeze(-1))
        found = self.estimates(online.head, data)
        v_loss = mean(0.5 * (found.v_target[:-1] - value[:-1]).pow(2))
        q_loss = mean(0.5 * (found.q_target - found.q_taken).pow(2))
        policy_loss = mean(-found.gain * found.log_pi_taken)
        total = config.v_loss_scale * v_loss + config.q_loss_scale * q_loss + config.policy_loss_scale * policy_loss
        metrics = {"loss/v": v_loss, "loss/q": q_loss, "loss/policy": policy_loss}
        dynamics = getattr(network, "dynamics", None)
        if dynamics is not None:
            forward, inverse = auxiliary_losses(dynamics, online.features, data.action, mean)
            total = total + config.forward_dynamics_scale * forward + config.inverse_dynamics_scale * inverse
            metrics |= {"loss/forward_dynamics": forward, "loss/inverse_dynamics": inverse}
        if health:
            metrics |= self.health(online.head, found, data, mean)
        return Loss(total, metrics)

    def estimates(self, head: Head, data: Transitions) -> Estimates:
        """Return the log-probabilities and Q of the actions taken, and the targets of V, Q and π."""
        config = self._config
        advantage, value, index = head.advantage[:-1], head.value, data.seen.index[:-1]
        valid = data.seen.action_mask[:-1]
        log_pi = policy.family_log_probs(advantage, index, valid)  # [T, B, F, A]
        log_pi_taken = gather_action(log_pi, data.action)  # [T, B, F]
        mixture = log_pi[..., 0, :] if config.q_stop_gradient else policy.log_probs(advantage, index, valid)
        q = centered_q(advantage, value[:-1], mixture, stop_gradient=config.q_stop_gradient)
        q_taken = gather_action(q, data.action)  # [T, B, F]
        with torch.no_grad():
            # A step that is not a transition has ratio 0, whatever its μ is.
            ratio = log_pi_taken[..., :1].exp() / data.behavior_prob.unsqueeze(-1)  # [T, B, 1]
            ratio = ratio.where(data.mask.unsqueeze(-1), 0.0)
            reward = shape_rewards(data.reward, config.reward_shapes, config.reward_scales)  # [T, B, F]
            discount = (config.discount * (~data.terminated).float()).unsqueeze(-1)  # [T, B, 1]
            v_target = vtrace(value, reward, discount, ratio, rho_bar=config.rho_bar, c_bar=config.c_bar)
            if config.retrace_form == "expected":
                next_value = value[1:]
            else:
                next_value = sarsa_next_value(q_taken, value, data.mask.unsqueeze(-1))
            q_target = retrace(q_taken, next_value, reward, discount, ratio, c_bar=config.c_bar)
            gain = policy_gradient_advantage(value, v_target, reward, discount, ratio, rho_bar=config.rho_bar)
        return Estimates(log_pi, log_pi_taken, q_taken, ratio, v_target, q_target, gain)

    def health(self, head: Head, found: Estimates, data: Transitions, mean: MaskedMean) -> dict[str, Tensor]:
        """Return metrics that do not affect training: entropy, ratios, the scale of A, V and its targets."""
        advantage, value = head.advantage[:-1], head.value
        families = value.shape[-1]
        with torch.no_grad():
            entropy = policy.entropy(found.log_pi[..., 0, :], data.seen.action_mask[:-1]).unsqueeze(-1)
            centered = advantage - advantage.mean(-1, keepdim=True)
            # torch.std is slow on short rows.
            spread = centered.pow(2).mean(-1).sqrt().mean(-1, keepdim=True)
            change = (value[1:] - value[:-1]).abs() * (~data.terminated).float().unsqueeze(-1)  # [T, B, F]
            return {
                "policy/entropy": mean(entropy),
                "policy/ratio_mean": mean(found.ratio),
                "policy/ratio_clip_fraction": mean((found.ratio > self._config.rho_bar).float()),
                "policy/advantage_scale": mean(spread),
                "value/mean": mean(value[:-1]) / families,
                "value/target_mean": mean(found.v_target[:-1]) / families,
                "value/change": mean(change) / families,
            }


def auxiliary_losses(
    dynamics: nn.ModuleList, features: list[Tensor], action: Tensor, mean: MaskedMean
) -> tuple[Tensor, Tensor]:
    """Return the mean losses of forward and inverse dynamics, each summed over the encoders."""

    def total(task: Callable[[Dynamics, Tensor], Tensor]) -> Tensor:
        pairs = [(d, phi) for d, phi in zip(dynamics, features, strict=True) if isinstance(d, Dynamics)]
        return torch.stack([mean(task(d, phi).unsqueeze(-1)) for d, phi in pairs]).sum()

    return total(lambda d, phi: d.forward_loss(phi, action)), total(lambda d, phi: d.inverse_loss(phi, action))
