"""What the optimizers share: groups of parameters, each with its rate, and a state for each parameter.

``torch.optim.Optimizer`` offers the same, but it imports PyTorch's compiler, which takes a second in every process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor


class Rule(ABC):
    """A rule that changes parameters by their gradients."""

    def __init__(self, groups: list[dict[str, Any]], rate: float) -> None:
        self.groups = [{"rate": rate, **group} for group in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    @abstractmethod
    def step(self) -> None:
        """Take one step with every parameter that has a gradient."""
