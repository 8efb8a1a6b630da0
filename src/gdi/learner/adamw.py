"""AdamW with PyTorch's fused kernel, as in ``torch.optim.AdamW(fused=True)``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gdi.config import AdamWConfig
from gdi.learner.rule import Rule


class AdamW(Rule):
    """AdamW: m ← β₁m + (1 − β₁)∇, v ← β₂v + (1 − β₂)∇², θ ← (1 − lr·decay)θ − lr·m̂/(√v̂ + ε).

    m̂ and v̂ are m and v without their bias towards 0.
    """

    def __init__(self, groups: list[dict[str, Any]], config: AdamWConfig) -> None:
        super().__init__(groups, config.learning_rate)
        self._config = config

    @torch.no_grad()
    def step(self) -> None:
        for group in self.groups:
            there = [parameter for parameter in group["params"] if parameter.grad is not None]
            if there:
                self._step(there, group["rate"], group.get("weight_decay", 0.0))

    def _step(self, parameters: list[Tensor], rate: float, weight_decay: float) -> None:
        states = [self._state_of(parameter) for parameter in parameters]
        steps = [state["step"] for state in states]
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],  # only AMSGrad has a fourth moment
            steps,
            lr=rate,
            beta1=self._config.adam_beta_1,
            beta2=self._config.adam_beta_2,
            weight_decay=weight_decay,
            eps=self._config.adam_epsilon,
            amsgrad=False,
            maximize=False,
        )

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return the moments under the names that torch.optim gave them, which checkpoints hold."""
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]
