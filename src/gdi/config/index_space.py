"""Λ, the index set: one dataclass per set of knobs. Its field names are the components of λ, in their order.

A knob is a number that the policy or the learner would otherwise hold constant. Names, labels and limits of knobs are
written in the space alone; everything else (log header, console, ``--index``) reads them through ``gdi.index_space``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gdi.config.checks import MAX_BLOCKS, not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class AxisConfig:
    """One axis of the index set Λ: searched by the controller, or held at one value."""

    search: bool = True
    """True: the controller chooses on this axis. False: it stays at fixed_value."""
    low: float = 0.0
    """Left end of the search range. Table H "Bandit Search Range"."""
    high: float = 50.0
    """Right end of the search range. Table H "Bandit Search Range"."""
    block_width: float = 1.0
    """acc: there are (high - low) / acc blocks, which with coordinate linear are so wide. Table H "Accuracy of Search
    Range"."""
    coordinate: Literal["linear", "log"] = "linear"
    """linear: blocks equal in the value u. log: as many blocks, equal in log(1 + u), so finer near 0."""
    fixed_value: float = 0.0
    """The value when not searched. Table H "Fixed Selection"."""


@dataclass(frozen=True)
class GDISpace:
    """Λ = {(1/τ1, 1/τ2, ε)} (equ: soft epsilon policy space)."""

    kind: ClassVar[str] = "gdi"
    labels: ClassVar[Mapping[str, str]] = {"inverse_tau_1": "1/τ1", "inverse_tau_2": "1/τ2", "epsilon": "ε"}
    limits: ClassVar[Mapping[str, float]] = {"epsilon": 1.0}

    inverse_tau_1: AxisConfig = AxisConfig(fixed_value=1.0)
    inverse_tau_2: AxisConfig = AxisConfig(fixed_value=0.0)
    epsilon: AxisConfig = AxisConfig(high=1.0, block_width=0.1, fixed_value=1.0)


def axes_of(space: Any) -> dict[str, AxisConfig]:
    """The axis of each component of λ, in the order of the space's fields."""
    return {field.name: getattr(space, field.name) for field in fields(space)}


def space_problems(space: Any, config: Config) -> Iterator[str]:
    """The rules of any space, a user's own included. A space needs no ``problems`` of its own."""
    for name, axis in axes_of(space).items():
        yield from axis_problems(axis, f"index_space.{name}".replace("_", "-"))
        limit = getattr(space, "limits", {}).get(name)
        if limit is not None and max(axis.high, axis.fixed_value) > limit:
            yield f"--index-space.{name.replace('_', '-')} is at most {limit:g}: lower its high or fixed-value."
    knobs, names = set(config.learner.knobs), set(axes_of(space))
    if knobs != names:
        odd = sorted(knobs ^ names)[0]
        kind = type(config.learner).__name__
        yield f"the learner {kind} reads {sorted(knobs)}, the index space has {sorted(names)}: {odd!r} is in one only."


def axis_problems(axis: AxisConfig, section: str) -> Iterator[str]:
    yield from not_negative(axis, section, "low", "fixed_value")
    yield from positive(axis, section, "block_width")
    extent = axis.high - axis.low
    if not extent > 0:
        yield f"--{section}.high {axis.high} must be greater than low {axis.low}."
    elif axis.block_width > extent:
        yield f"--{section}.block-width {axis.block_width} is wider than the range [{axis.low}, {axis.high}]."
    elif not extent <= MAX_BLOCKS * axis.block_width:
        yield (
            f"--{section}.block-width {axis.block_width} cuts the range [{axis.low}, {axis.high}] into more than "
            f"{MAX_BLOCKS:,} blocks: widen it."
        )
