"""The index set (Λ): named axes, each with bounds, a block width and a coordinate.

A controller works in coordinates x, one number per searched axis. This module converts x into the index λ, and back.
For an inverse temperature, the coordinate is u = 1/τ itself (``linear``) or log(1 + u) (``log``). The latter is the
paper's τ = 1/(exp(x) − 1), with as many blocks as the linear one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gdi.config import AxisConfig, axes_of, space_traits
from gdi.errors import UserError
from gdi.types import Array, Index


@dataclass(frozen=True)
class Axis:
    """One searched axis: [low, high] in its coordinate, split into blocks of equal width."""

    name: str
    low: float
    high: float
    num_blocks: int
    logarithmic: bool

    @property
    def block_width(self) -> float:
        return (self.high - self.low) / self.num_blocks

    def block_of(self, x: float) -> int:
        """Return the block that contains x; the right end belongs to the last block.

        ⌊(min{max{x, l}, r} − l) / acc⌋. The tolerance corrects rounding at the borders, because floor(0.3 / 0.1) is 2
        in floating point.
        """
        clipped = min(max(x, self.low), self.high)
        return min(int((clipped - self.low) / self.block_width + 1e-9), self.num_blocks - 1)

    def sample_in_block(self, block: int, rng: np.random.Generator) -> float:
        """Draw a coordinate uniformly from the block."""
        return self.low + (block + float(rng.random())) * self.block_width

    def to_value(self, x: float) -> float:
        """Convert a coordinate to a value: u = x, or u = exp(x) − 1.

        The latter is 1/τ for the paper's τ = 1/(exp(x) − 1).
        """
        return math.expm1(x) if self.logarithmic else x

    def to_coordinate(self, value: float) -> float:
        """Convert a value to a coordinate: x = u, or x = log(1 + u), the paper's x = log(1 + 1/τ)."""
        return math.log1p(value) if self.logarithmic else value


def make_axis(name: str, config: AxisConfig) -> Axis:
    num_blocks = max(1, round((config.high - config.low) / config.block_width))
    logarithmic = config.coordinate == "log"
    low, high = (math.log1p(end) if logarithmic else end for end in (config.low, config.high))
    return Axis(name, low, high, num_blocks, logarithmic)


@dataclass(frozen=True)
class IndexSpace:
    """The index set (Λ): the components of λ, the searched axes, and the values of the fixed components."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    limits: tuple[float, ...]  # the largest value that each component may have; the smallest is 0
    axes: tuple[Axis, ...]
    base: Index

    @property
    def degrees_of_freedom(self) -> int:
        """Number of searched axes, the n of GDI-I^n and GDI-H^n."""
        return len(self.axes)

    def to_index(self, x: Array) -> Index:
        """Convert coordinates, [axes], to an index λ."""
        values = {axis.name: axis.to_value(float(x[i])) for i, axis in enumerate(self.axes)}
        return tuple(values.get(name, held) for name, held in zip(self.names, self.base, strict=True))

    def to_coordinates(self, index: Index) -> Array:
        """Convert an index λ to coordinates, [axes]."""
        values = self.by_name(index)
        return np.array([axis.to_coordinate(values[axis.name]) for axis in self.axes], dtype=np.float64)

    def by_name(self, index: Index) -> dict[str, float]:
        return dict(zip(self.names, index, strict=True))

    def label_of(self, name: str) -> str:
        return self.labels[self.names.index(name)]

    def text(self, index: Index) -> str:
        """Return an index as text with three digits each, such as ``1/τ1 3.5  1/τ2 12.5  ε 0.85``."""
        return "  ".join(f"{label} {value:.3g}" for label, value in zip(self.labels, index, strict=True))

    def check(self, index: Index) -> Index:
        """Return the index; raise UserError if a component is missing, below 0 or above its limit."""
        if len(index) != len(self.names):
            raise UserError(
                f"the exploration setting λ = ({', '.join(self.labels)}) has {len(self.names)} numbers, not "
                f"{len(index)}: give one number per component."
            )
        for label, value, limit in zip(self.labels, index, self.limits, strict=True):
            if not (0 <= value <= limit and math.isfinite(value)):
                limited = "0 or more" if math.isinf(limit) else f"in [0, {limit:g}]"
                raise UserError(f"{label} must be {limited}, not {value:g}.")
        return index


def make_index_space(config: Any) -> IndexSpace:
    """Make the space of a config section, which is a dataclass of axes, ours or a user's own."""
    axes = axes_of(config)
    labels, limits = space_traits(config).labels, space_traits(config).limits
    return IndexSpace(
        names=tuple(axes),
        labels=tuple(labels.get(name, name) for name in axes),
        limits=tuple(limits.get(name, math.inf) for name in axes),
        axes=tuple(make_axis(name, axis) for name, axis in axes.items() if axis.search),
        base=tuple(axis.fixed_value for axis in axes.values()),
    )
