"""AdamW with the paper's schedules: linear warm-up, linear annealing, and clipping by global norm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gdi.config import Config, OptimizerConfig
from gdi.types import State


def learning_rate_at(update: int, progress: float, warmup_updates: int, num_updates: int, peak: float) -> float:
    """Return the learning rate of an update: a linear warm-up to the peak, then a linear anneal to 0.

    The warm-up takes ``warmup_updates``, and the rate reaches 0 at the last of ``num_updates``. ``progress`` is the
    share of all training already done, in [0, 1].
    """
    warmup = (update + 1) / warmup_updates if update < warmup_updates else 1.0
    anneal = (1.0 - progress) / (1.0 - warmup_updates / num_updates)
    return peak * min(warmup, anneal, 1.0)


def weight_decay_at(progress: float, config: OptimizerConfig) -> float:
    """Return the weight decay, which falls linearly from the configured value to 0 at the last update."""
    return config.weight_decay * (1.0 - progress)


class Optimizer:
    """AdamW over a network's parameters, without weight decay for biases and other vectors."""

    def __init__(self, network: nn.Module, config: Config) -> None:
        self._config = settings = config.optimizer
        self._num_updates = config.planned_updates
        self._warmup_updates = settings.planned_warmup_updates(self._num_updates)
        self._named = dict(network.named_parameters())
        weights = [p for p in self._named.values() if p.ndim > 1]
        vectors = [p for p in self._named.values() if p.ndim <= 1]
        self._adamw = torch.optim.AdamW(
            [{"params": weights, "decays": True}, {"params": vectors, "decays": False}],
            lr=settings.learning_rate,
            betas=(settings.adam_beta_1, settings.adam_beta_2),
            eps=settings.adam_epsilon,
            weight_decay=0.0,
            fused=True,
        )

    @property
    def parameters(self) -> list[Tensor]:
        return list(self._named.values())

    def accumulate(self, gradients: list[Tensor | None], *, fresh: bool) -> None:
        """Add gradients, in the order of ``parameters``; ``fresh`` replaces the previous sum."""
        for parameter, gradient in zip(self._named.values(), gradients, strict=True):
            if fresh:
                parameter.grad = None if gradient is None else _match_layout(gradient, parameter)
            elif gradient is not None:
                assert parameter.grad is not None  # all chunks pass through the same layers
                parameter.grad.add_(gradient)

    def clip(self) -> torch.Tensor:
        """Scale all gradients down to a global norm of at most ``clip_norm``. Return the norm before."""
        return nn.utils.clip_grad_norm_(self._named.values(), self._config.clip_norm)

    def step(self, update: int, progress: float) -> float:
        """Take one AdamW step at the scheduled rate and weight decay. Return the rate."""
        peak = self._config.learning_rate
        rate = learning_rate_at(update, progress, self._warmup_updates, self._num_updates, peak)
        for group in self._adamw.param_groups:
            group["lr"] = rate
            group["weight_decay"] = weight_decay_at(progress, self._config) if group["decays"] else 0.0
        self._adamw.step()
        return rate

    def state_dict(self) -> State:
        """Return the moments by parameter name, so that a checkpoint does not depend on their order."""
        return {
            name: {key: value.clone() for key, value in self._adamw.state[parameter].items()}
            for name, parameter in self._named.items()
            if parameter in self._adamw.state
        }

    def load_state_dict(self, state: State) -> None:
        for name, moments in state.items():
            parameter = self._named[name]
            self._adamw.state[parameter] = {key: _match_layout(value, parameter) for key, value in moments.items()}


def _match_layout(value: Any, parameter: Tensor) -> Tensor:
    """Copy a gradient or moment into its parameter's memory layout.

    The fused kernel matches elements by memory order, not by index.
    """
    tensor = torch.as_tensor(value)
    if tensor.shape != parameter.shape:
        return tensor.to(parameter.device).clone()
    return torch.empty_like(parameter, requires_grad=False).copy_(tensor)
