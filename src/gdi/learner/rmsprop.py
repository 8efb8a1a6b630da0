"""RMSProp with ε inside the root, as in the publications of DQN and IMPALA.

PyTorch's own RMSProp adds ε outside the root.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gdi.config import RMSPropConfig
from gdi.learner.rule import Rule


class RMSProp(Rule):
    """RMSProp, optionally centered and with momentum.

    g² ← αg² + (1 − α)∇², ḡ ← αḡ + (1 − α)∇, m ← βm + lr·∇/√(g² − ḡ² + ε), θ ← θ − m. ḡ is 0 unless ``centered``.
    """

    def __init__(self, groups: list[dict[str, Any]], config: RMSPropConfig) -> None:
        super().__init__(groups, config.learning_rate)
        self._config = config

    @torch.no_grad()
    def step(self) -> None:
        for group in self.groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, parameter.grad, group["rate"])

    def _step(self, parameter: Tensor, gradient: Tensor, rate: float) -> None:
        config, state = self._config, self.state.setdefault(parameter, {})
        if not state:
            state["square"] = torch.zeros_like(parameter)
            if config.centered:
                state["mean"] = torch.zeros_like(parameter)
            if config.momentum:
                state["momentum"] = torch.zeros_like(parameter)
        square = state["square"].mul_(config.decay).addcmul_(gradient, gradient, value=1 - config.decay)
        if config.centered:
            mean = state["mean"].lerp_(gradient, 1 - config.decay)
            square = square.addcmul(mean, mean, value=-1)
        root = square.add(config.epsilon).sqrt_()
        if not config.momentum:
            parameter.addcdiv_(gradient, root, value=-rate)
            return
        parameter.sub_(state["momentum"].mul_(config.momentum).addcdiv_(gradient, root, value=rate))
