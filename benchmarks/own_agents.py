"""Agents that differ from a preset by one part that no setting has, to find out whether this part matters.

``AGENTS`` has a preset per agent; ``python -m benchmarks.own_sweep`` trains them by a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from gdi import policy
from gdi.algorithms import Algorithm, Loss, Transitions
from gdi.algorithms import dqn as dqn_algorithm
from gdi.algorithms.dqn import DQN
from gdi.algorithms.gdi import GDI, Estimates, Head, gather_action
from gdi.config import Config, DQNConfig, GDIConfig
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.presets import Preset
from gdi.presets.dqn import dqn
from gdi.presets.gdi import gdi_h3, gdi_i3
from gdi.returns import policy_gradient_advantage, retrace, vtrace
from gdi.rewards import shape_rewards


@dataclass(frozen=True)
class MaxGDIConfig(GDIConfig):
    """GDI whose targets evaluate the greedy policy, so that they bootstrap from max_a Q, as DQN's do."""

    def build(self, config: Config) -> Algorithm:
        return MaxGDI(self)


class MaxGDI(GDI):
    """GDI with V-trace and ReTrace for the policy argmax A, instead of for π under the stored λ.

    Q = (A − max A) + V, so V(s') = max_a Q(s', a). Only the policy gradient still follows π under λ.
    """

    def estimates(self, head: Head, data: Transitions) -> Estimates:
        config, value, mask = self._config, head.value, data.mask.unsqueeze(-1)
        advantage, valid = head.advantage[:-1], data.seen.action_mask[:-1]
        log_pi = policy.family_log_probs(advantage, data.seen.index[:-1], valid)  # [T, B, F, A]
        log_pi_taken = gather_action(log_pi, data.action)
        greedy = policy.filled(advantage, valid.unsqueeze(2), -torch.inf).argmax(-1, keepdim=True)  # [T, B, F, 1]
        q = advantage - advantage.gather(-1, greedy) + value[:-1].detach().unsqueeze(-1)
        q_taken = gather_action(q, data.action)
        with torch.no_grad():
            mu = data.behavior_prob.unsqueeze(-1)
            # A step that is not a transition has ratio 0, whatever its μ is.
            ratio = (log_pi_taken[..., :1].exp() / mu).where(mask, 0.0)
            greedy_ratio = ((greedy.squeeze(-1) == data.action.unsqueeze(-1)) / mu).where(mask, 0.0)  # [T, B, F]
            reward = shape_rewards(data.reward, config.reward_shapes, config.reward_scales)
            discount = (config.discount * (~data.terminated).float()).unsqueeze(-1)
            v_target = vtrace(value, reward, discount, greedy_ratio, rho_bar=config.rho_bar, c_bar=config.c_bar)
            q_target = retrace(q_taken, value[1:], reward, discount, greedy_ratio, c_bar=config.c_bar)
            gain = policy_gradient_advantage(value, v_target, reward, discount, ratio, rho_bar=config.rho_bar)
        return Estimates(log_pi, log_pi_taken, q_taken, ratio, v_target, q_target, gain)


@dataclass(frozen=True)
class SharedGDIConfig(GDIConfig):
    """GDI-H whose families share the Q loss of a step, as they share its policy gradient."""

    def build(self, config: Config) -> Algorithm:
        return SharedGDI(self)


class SharedGDI(GDI):
    """GDI-H with the weight w_i·π_i(a) / π(a) on the Q loss of family i, where w = (ε, 1 − ε).

    ∇log π(a) reaches the families with these weights, which sum to 1. The Q loss reaches each of them in full.
    """

    def estimates(self, head: Head, data: Transitions) -> Estimates:
        found = super().estimates(head, data)
        with torch.no_grad():
            index, valid = data.seen.index[:-1], data.seen.action_mask[:-1]
            parts = torch.stack(policy.component_log_probs(head.advantage[:-1], index, valid), dim=2)  # [T, B, 2, A]
            share = torch.softmax(gather_action(parts, data.action), dim=-1)  # [T, B, 2]
        error = share.sqrt() * (found.q_target - found.q_taken)  # which the loss squares
        return found._replace(q_taken=found.q_target - error)


@dataclass(frozen=True)
class ExpectedDQNConfig(DQNConfig):
    """DQN whose target is the mean of Q⁻ under the policy that acted, instead of its maximum (expected SARSA)."""

    def build(self, config: Config) -> Algorithm:
        return ExpectedDQN(self)


class ExpectedDQN(DQN):
    """DQN with y = Σ γ^k r_k + γ^m E_π[Q⁻(s_m, ·)], where π has the stored λ and the target network's values."""

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        assert data.target is not None
        row = self._n_step(data).row
        column = torch.arange(len(row), device=row.device)
        head = data.target.head  # of the bootstrap row alone
        with torch.no_grad():
            seen = Seen(*(tensor[row, column].unsqueeze(0) for tensor in data.seen))
            q = head.q  # [1, B, 1, A]
            mean = (self.log_probs(head, seen).exp().unsqueeze(2) * q).sum(-1, keepdim=True)
        target = data.target._replace(head=dqn_algorithm.Head(mean.expand_as(q)))  # whose maximum is the mean
        return super().loss(network, online, data._replace(target=target), health=health)


@dataclass(frozen=True)
class SoftmaxDQNConfig(DQNConfig):
    """DQN that acts as GDI-I3 does: by a mixture of two softmaxes of Q, whose λ the bandits choose."""

    knobs: ClassVar[tuple[str, ...]] = GDIConfig.knobs

    def build(self, config: Config) -> Algorithm:
        return SoftmaxDQN(self)


class SoftmaxDQN(DQN):
    """DQN with the policy of GDI, and the maximum in its target."""

    def log_probs(self, head: Any, seen: Seen) -> Tensor:
        return policy.log_probs(head.q, seen.index, seen.action_mask)

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        found = super().loss(network, online, data, health=health)
        found.metrics.pop("policy/epsilon", None)  # it reads the first component of λ, which here is 1/τ1
        return found


@dataclass(frozen=True)
class ExpectedSoftmaxDQNConfig(SoftmaxDQNConfig):
    """DQN with GDI's exploration, and a target under the policy that acted."""

    def build(self, config: Config) -> Algorithm:
        return ExpectedSoftmaxDQN(self)


class ExpectedSoftmaxDQN(SoftmaxDQN, ExpectedDQN):
    """DQN with the policy of GDI, and the mean under it in its target."""


def with_learner(config: Config, kind: type[Any]) -> Config:
    """Return the config with the same numbers of its learner in another kind of learner."""
    learner = config.learner
    return replace(config, learner=kind(**{field.name: getattr(learner, field.name) for field in fields(learner)}))


def softmax_dqn(scale: str, kind: type[Any]) -> Config:
    """Return DQN with the exploration settings and the bandits of GDI-I3."""
    explores = gdi_i3(scale)
    config = replace(dqn(scale), index_space=explores.index_space, controller=explores.controller)
    return with_learner(config, kind)


AGENTS = {
    "gdi-max": Preset(
        "gdi-i3 with targets of the greedy policy", lambda scale: with_learner(gdi_i3(scale), MaxGDIConfig)
    ),
    "gdi-h3-shared": Preset(
        "gdi-h3 whose families share the Q loss", lambda scale: with_learner(gdi_h3(scale), SharedGDIConfig)
    ),
    "dqn-expected": Preset(
        "dqn with the mean under the acting policy in its target",
        lambda scale: with_learner(dqn(scale), ExpectedDQNConfig),
    ),
    "dqn-softmax": Preset("dqn that acts as gdi-i3", lambda scale: softmax_dqn(scale, SoftmaxDQNConfig)),
    "dqn-softmax-expected": Preset(
        "dqn-softmax with the mean in its target", lambda scale: softmax_dqn(scale, ExpectedSoftmaxDQNConfig)
    ),
}
