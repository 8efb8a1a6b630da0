"""AdamW or RMSProp with their schedules: linear warm-up, linear anneal of the rate and of the weight decay, a clip."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gdi.config import AdamWConfig, Config, RMSPropConfig, planned_warmup_updates
from gdi.learner.adamw import AdamW
from gdi.learner.rmsprop import RMSProp
from gdi.learner.rule import Rule
from gdi.types import State


def learning_rate_at(update: int, progress: float, warmup_updates: int, num_updates: int, peak: float) -> float:
    """Return the learning rate of an update: a linear warm-up to the peak, then a linear anneal to 0.

    The warm-up takes ``warmup_updates``, and the rate reaches 0 at the last of ``num_updates``. ``progress`` is the
    share of all training already done, in [0, 1].
    """
    warmup = (update + 1) / warmup_updates if update < warmup_updates else 1.0
    anneal = (1.0 - progress) / (1.0 - warmup_updates / num_updates)
    return peak * min(warmup, anneal, 1.0)


def constant_rate_at(update: int, warmup_updates: int, peak: float) -> float:
    """Return the learning rate of an update: a linear warm-up to the peak, then the peak."""
    return peak * min((update + 1) / warmup_updates if warmup_updates else 1.0, 1.0)


def weight_decay_at(progress: float, config: AdamWConfig) -> float:
    """Return the weight-decay coefficient, which falls linearly to 0 at the last update."""
    return config.weight_decay * (1.0 - progress)


class Optimizer:
    """Steps over a network's parameters; biases (and every other vector) are not decayed."""

    def __init__(self, network: nn.Module, config: Config) -> None:
        self._config = settings = config.optimizer
        self._num_updates = config.planned_updates
        self._warmup_updates = planned_warmup_updates(settings.warmup_updates, self._num_updates)
        self._named = dict(network.named_parameters())
        weights = [p for p in self._named.values() if p.ndim > 1]
        vectors = [p for p in self._named.values() if p.ndim <= 1]
        groups = [{"params": weights, "decays": True}, {"params": vectors, "decays": False}]
        if not getattr(settings, "weight_decay", 0.0):  # one group takes one kernel call
            groups = [{"params": weights + vectors, "decays": False}]
        self._gradients = {name: torch.empty_like(p, requires_grad=False) for name, p in self._named.items()}
        self._rule: Rule
        if isinstance(settings, RMSPropConfig):
            self._rule = RMSProp(groups, settings)
        else:
            self._rule = AdamW(groups, settings)

    @property
    def parameters(self) -> list[Tensor]:
        return list(self._named.values())

    def accumulate(self, gradients: list[Tensor | None], *, fresh: bool) -> None:
        """Add gradients, in the order of ``parameters``; ``fresh`` replaces the previous sum."""
        there = [
            (name, gradient) for name, gradient in zip(self._named, gradients, strict=True) if gradient is not None
        ]
        sums = [self._gradients[name] for name, _ in there]
        if fresh:
            for parameter in self._named.values():
                parameter.grad = None
            for name, _ in there:
                self._named[name].grad = self._gradients[name]
            torch._foreach_copy_(sums, [gradient for _, gradient in there])
        else:  # all chunks pass through the same layers
            torch._foreach_add_(sums, [gradient for _, gradient in there])

    def clip(self) -> torch.Tensor:
        """Scale all gradients down to a global norm of at most ``clip_norm``. Return the norm before."""
        return nn.utils.clip_grad_norm_(self._named.values(), self._config.clip_norm)

    def step(self, update: int, progress: float) -> float:
        """Take one step at the scheduled rate and decay; returns the rate."""
        peak = self._config.learning_rate
        if self._config.schedule == "constant":
            rate = constant_rate_at(update, self._warmup_updates, peak)
        else:
            rate = learning_rate_at(update, progress, self._warmup_updates, self._num_updates, peak)
        for group in self._rule.groups:
            group["rate"] = rate
            if isinstance(self._config, AdamWConfig):
                group["weight_decay"] = weight_decay_at(progress, self._config) if group["decays"] else 0.0
        self._rule.step()
        return rate

    def state_dict(self) -> State:
        """Return the moments by parameter name, so that a checkpoint does not depend on their order."""
        return {
            name: {key: value.clone() for key, value in self._rule.state[parameter].items()}
            for name, parameter in self._named.items()
            if parameter in self._rule.state
        }

    def load_state_dict(self, state: State) -> None:
        for name, moments in state.items():
            parameter = self._named[name]
            self._rule.state[parameter] = {key: _match_layout(value, parameter) for key, value in moments.items()}


def _match_layout(value: Any, parameter: Tensor) -> Tensor:
    """Copy a moment into its parameter's memory layout.

    The fused kernel matches elements by memory order, not by index.
    """
    tensor = torch.as_tensor(value)
    if tensor.shape != parameter.shape:
        return tensor.to(parameter.device).clone()
    return torch.empty_like(parameter, requires_grad=False).copy_(tensor)
