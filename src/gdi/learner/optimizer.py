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

# A norm below this share of the clip changes no gradient, however the division by the norm is rounded.
NOT_CLIPPED = 0.999


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
        self._rule: Rule
        if isinstance(settings, RMSPropConfig):
            self._rule = RMSProp(groups, settings)
        else:
            self._rule = AdamW(groups, settings)

    @property
    def parameters(self) -> list[Tensor]:
        return list(self._named.values())

    def accumulate(self, gradients: list[Tensor | None], *, fresh: bool) -> None:
        """Add gradients, in the order of ``parameters``; ``fresh`` replaces the previous sum, and keeps these."""
        if fresh:
            for parameter, gradient in zip(self._named.values(), _separate(gradients), strict=True):
                parameter.grad = gradient if gradient is None else _match_layout(gradient, parameter)
        else:  # all chunks pass through the same layers
            torch._foreach_add_(self._sums(), [gradient for gradient in gradients if gradient is not None])

    def _sums(self) -> list[Tensor]:
        return [gradient for parameter in self._named.values() if (gradient := parameter.grad) is not None]

    @torch.no_grad()
    def clip(self) -> float:
        """Scale all gradients down to a global norm of at most ``clip_norm``. Return the norm before.

        The arithmetic is that of ``torch.nn.utils.clip_grad_norm_``. It also multiplies by 1 where nothing is clipped.
        """
        gradients, limit = self._sums(), self._config.clip_norm
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients, 2.0)), 2.0)
        found = float(norm)
        if not found < NOT_CLIPPED * limit:
            torch._foreach_mul_(gradients, torch.clamp(limit / (norm + 1e-6), max=1.0))
        return found

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
            self._rule.state[parameter] = {key: _copy_in_layout(value, parameter) for key, value in moments.items()}


def _separate(gradients: list[Tensor | None]) -> list[Tensor | None]:
    """Return the gradients with an own copy of each, if two are the same tensor, because they are scaled in place."""
    places = [gradient.data_ptr() for gradient in gradients if gradient is not None]
    if len(set(places)) == len(places):
        return gradients
    return [gradient if gradient is None else gradient.clone() for gradient in gradients]


def _match_layout(gradient: Tensor, parameter: Tensor) -> Tensor:
    """Return the gradient in its parameter's memory layout: the fused kernel matches elements by memory order."""
    return gradient if gradient.stride() == parameter.stride() else _copy_in_layout(gradient, parameter)


def _copy_in_layout(value: Any, parameter: Tensor) -> Tensor:
    """Copy a moment or a gradient into its parameter's memory layout."""
    tensor = torch.as_tensor(value)
    if tensor.shape != parameter.shape:
        return tensor.to(parameter.device).clone()
    return torch.empty_like(parameter, requires_grad=False).copy_(tensor)
