"""Your own algorithm: REINFORCE with a learned baseline, in GDI's loop.

Run ``python examples/my_algorithm.py`` to train on CartPole-v1. The algorithm defines its heads, how they act under λ,
and its loss. The loop provides sampling, replay, evaluation, checkpoints and Ray. The only knob is the inverse
temperature. It is an axis of Λ. ``search=True`` and a controller that learns, such as ``TileBanditConfig()``, tune it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

import gdi
from gdi.algorithms import Algorithm, Loss, Transitions
from gdi.config import AdamWConfig, AxisConfig, Config, ExactReplayConfig
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.policy import log_softmax


class Head(NamedTuple):
    logits: Tensor
    value: Tensor


class Heads(nn.Module):
    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.logits, self.value = nn.Linear(features, num_actions), nn.Linear(features, 1)

    def forward(self, x: Tensor) -> Head:
        return Head(self.logits(x), self.value(x).squeeze(-1))


@dataclass(frozen=True)
class Space:
    """The index set Λ = (1/τ,), where 1/τ is fixed at 1."""

    inverse_tau: AxisConfig = AxisConfig(search=False, high=4.0, block_width=0.1, fixed_value=1.0)


@dataclass(frozen=True)
class ReinforceConfig:
    """The settings, which the run saves in config.json; ``knobs`` are the components of λ that are read."""

    knobs: ClassVar[tuple[str, ...]] = ("inverse_tau",)
    discount: float = 0.99
    value_scale: float = 0.05

    def build(self, config: Config) -> Algorithm:
        return Reinforce(self)


class Reinforce(Algorithm):
    """REINFORCE with the loss −(G_t − V(s_t))·log π(a_t|s_t).

    G_t is the discounted return until the end of the sequence, where V bootstraps it.
    """

    def __init__(self, config: ReinforceConfig) -> None:
        self.config = config

    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        return Heads(features, num_actions)

    def log_probs(self, head: Head, seen: Seen) -> Tensor:
        return log_softmax(head.logits[:, :, 0] * seen.index, seen.action_mask)  # [T, B, A]

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool) -> Loss:
        value, mask = online.head.value[:, :, 0], data.mask.float()
        log_pi = self.log_probs(online.head, data.seen)[:-1].gather(-1, data.action.unsqueeze(-1)).squeeze(-1)
        returns = torch.zeros_like(value)
        returns[-1] = value[-1].detach()
        for t in reversed(range(len(data.reward))):
            future = torch.where(data.truncated[t], value[t + 1].detach(), returns[t + 1])
            returns[t] = data.reward[t] + self.config.discount * future * ~data.terminated[t]
        gain = returns[:-1] - value[:-1]
        policy_loss = -(gain.detach() * log_pi * mask).sum() / mask.sum().clamp(min=1)
        value_loss = (gain.pow(2) * mask).sum() / mask.sum().clamp(min=1)
        metrics = {"loss/policy": policy_loss, "loss/value": value_loss}
        return Loss(policy_loss + self.config.value_scale * value_loss, metrics)


def make_config(env: str, *, steps: int, seed: int = 0) -> Config:
    """Return a config that trains every sequence once and at once.

    REINFORCE has no correction for old data.
    """
    config = gdi.make_config("fixed", env, steps=steps, seed=seed)
    return replace(
        config,
        preset="reinforce",
        index_space=Space(),
        learner=ReinforceConfig(),
        data=ExactReplayConfig(
            batch_size_sequences=4,
            burn_in_steps=0,
            sequence_steps=16,
            replay=1,
            replay_span_windows=1,
            push_every_updates=1,
            pull_every_steps=1,
        ),
        optimizer=AdamWConfig(learning_rate=1.5e-3, warmup_updates=0, weight_decay=0.0),
        run=replace(config.run, threads=1),  # so small a network gains nothing from a second one
    )


if __name__ == "__main__":
    result = gdi.train(make_config("CartPole-v1", steps=300_000))
    assert result.evaluation is not None
    print(f"mean return {result.evaluation.mean:.1f}; the run is in {result.run_dir}")
