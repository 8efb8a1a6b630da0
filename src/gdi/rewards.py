"""Rewards as the losses see them: the paper's two shapings, and the clipping of DQN, PPO and IMPALA.

The shapings are Table H "GDI-I3 Reward Shape", "GDI-H3 Reward Shape 1" and "2".
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def log_shape(reward: Tensor) -> Tensor:
    """Shape a reward logarithmically, counting gains twice as much as losses.

    log(|r| + 1)·(2·1{r ≥ 0} − 1{r < 0}).
    """
    return torch.log1p(reward.abs()) * torch.where(reward >= 0, 2.0, -1.0)


def root_shape(reward: Tensor) -> Tensor:
    """Shape a reward by a fourth root plus a small linear term: sign(r)·((|r| + 1)^0.25 − 1) + 0.001·r."""
    return reward.sign() * ((reward.abs() + 1.0).pow(0.25) - 1.0) + 0.001 * reward


def no_shape(reward: Tensor) -> Tensor:
    """Return the reward unchanged."""
    return reward


SHAPES: dict[str, Callable[[Tensor], Tensor]] = {"log": log_shape, "root": root_shape, "none": no_shape}


def shape_rewards(reward: Tensor, shapes: tuple[str, ...], scales: tuple[float, ...]) -> Tensor:
    """Shape and scale the reward for each family, [...] -> [..., F]."""
    return torch.stack([scale * SHAPES[shape](reward) for shape, scale in zip(shapes, scales, strict=True)], dim=-1)


def clip_rewards(reward: Tensor, clip: float) -> Tensor:
    """Return the rewards clipped to [−clip, clip]; a clip of 0 changes nothing."""
    return reward.clamp(-clip, clip) if clip else reward
