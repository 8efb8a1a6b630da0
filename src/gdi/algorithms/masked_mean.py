"""The mean over trained steps, in which every loss and metric of an algorithm is reported."""

from __future__ import annotations

from torch import Tensor


class MaskedMean:
    """A mean over the steps of a mask, [T, B]. With a mask [T, B, 1], values [T, B, F] are summed over the families."""

    def __init__(self, mask: Tensor) -> None:
        self.weight = mask.float()
        self.count = self.weight.sum().clamp(min=1.0)

    def __call__(self, per_step: Tensor) -> Tensor:
        return (per_step * self.weight).sum() / self.count
