"""The paper's two reward shapings (Table H "GDI-I3 Reward Shape", "GDI-H3 Reward Shape 1" and "2")."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def log_shape(reward: Tensor) -> Tensor:
    """log(|r| + 1)·(2·1{r ≥ 0} − 1{r < 0}): logarithmic, and a gain counts twice a loss."""
    return torch.log1p(reward.abs()) * torch.where(reward >= 0, 2.0, -1.0)


def root_shape(reward: Tensor) -> Tensor:
    """sign(r)·((|r| + 1)^0.25 − 1) + 0.001·r."""
    return reward.sign() * ((reward.abs() + 1.0).pow(0.25) - 1.0) + 0.001 * reward


def no_shape(reward: Tensor) -> Tensor:
    """r, as the environment gave it."""
    return reward


SHAPES: dict[str, Callable[[Tensor], Tensor]] = {"log": log_shape, "root": root_shape, "none": no_shape}


def shape_rewards(reward: Tensor, shapes: tuple[str, ...], scales: tuple[float, ...]) -> Tensor:
    """[...] -> [..., F]: the reward as each family sees it, shaped and scaled."""
    return torch.stack([scale * SHAPES[shape](reward) for shape, scale in zip(shapes, scales, strict=True)], dim=-1)
