"""The index space (Λ): one dataclass per set of knobs. Its fields are the components of an exploration setting (λ).

A knob is a number that the policy or the learner would otherwise hold constant. Only the space has the names, labels
and limits of knobs. The log header, the console and ``--index`` read them through ``gdi.index_space``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gdi.config.checks import MAX_BLOCKS, not_negative, positive
from gdi.config.traits import controller_traits, space_traits

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class AxisConfig:
    """One axis of the index space (Λ), which the controller searches or holds at one value."""

    search: bool = True
    """Let the controller choose a value on this axis, instead of the fixed value."""
    low: float = 0.0
    """Left end of the search range. Table H "Bandit Search Range"."""
    high: float = 50.0
    """Right end of the search range. Table H "Bandit Search Range"."""
    block_width: float = 1.0
    """Block width (acc). The range is split into (high - low) / acc blocks, each this wide if the coordinate is linear.
    Table H "Accuracy of Search Range"."""
    coordinate: Literal["linear", "log"] = "linear"
    """Scale on which the blocks are equally wide: linear in the value u, or log(1 + u), which is finer near 0."""
    fixed_value: float = 0.0
    """Value of the axis if it is not searched. Table H "Fixed Selection"."""


@dataclass(frozen=True)
class GDISpace:
    """Two inverse temperatures and a mixture weight, which are the exploration setting λ = (1/τ1, 1/τ2, ε).

    The paper's label is "equ: soft epsilon policy space".
    """

    kind: ClassVar[str] = "gdi"
    labels: ClassVar[Mapping[str, str]] = {"inverse_tau_1": "1/τ1", "inverse_tau_2": "1/τ2", "epsilon": "ε"}
    limits: ClassVar[Mapping[str, float]] = {"epsilon": 1.0}

    inverse_tau_1: AxisConfig = AxisConfig(fixed_value=1.0)
    inverse_tau_2: AxisConfig = AxisConfig(fixed_value=0.0)
    epsilon: AxisConfig = AxisConfig(high=1.0, block_width=0.1, fixed_value=1.0)


@dataclass(frozen=True)
class EpsilonSpace:
    """The probability of a random action (ε) of ε-greedy agents such as DQN, Λ = {ε}."""

    kind: ClassVar[str] = "epsilon"
    labels: ClassVar[Mapping[str, str]] = {"epsilon": "ε"}
    limits: ClassVar[Mapping[str, float]] = {"epsilon": 1.0}

    epsilon: AxisConfig = AxisConfig(search=False, high=1.0, block_width=0.05, fixed_value=0.1)


@dataclass(frozen=True)
class SoftmaxSpace:
    """The inverse temperature and entropy cost of softmax agents such as PPO and IMPALA, Λ = {(1/τ, entropy cost)}."""

    kind: ClassVar[str] = "softmax"
    labels: ClassVar[Mapping[str, str]] = {"inverse_tau": "1/τ", "entropy_cost": "c_H"}

    inverse_tau: AxisConfig = AxisConfig(search=False, high=10.0, block_width=0.2, coordinate="log", fixed_value=1.0)
    entropy_cost: AxisConfig = AxisConfig(search=False, high=0.05, block_width=0.002, fixed_value=0.01)


SpaceConfig = GDISpace | EpsilonSpace | SoftmaxSpace


def axes_of(space: Any) -> dict[str, AxisConfig]:
    """Return the axis of each component of λ, in the order of the space's fields."""
    return {field.name: getattr(space, field.name) for field in fields(space)}


def space_problems(space: Any, config: Config) -> Iterator[str]:
    """Yield the problems of any index space, a user's own included, which needs no ``problems``."""
    if controller_traits(config.controller).searches and not any(axis.search for axis in axes_of(space).values()):
        options = ", ".join(map(search_option, axes_of(space)))
        one_of = "one of " if len(axes_of(space)) > 1 else ""
        yield f"--controller {config.controller.kind} has nothing to search: add {one_of}{options}."
    for name, axis in axes_of(space).items():
        yield from axis_problems(axis, f"index_space.{name}".replace("_", "-"))
        limit = space_traits(space).limits.get(name)
        if limit is not None and max(axis.high, axis.fixed_value) > limit:
            yield f"--index-space.{name.replace('_', '-')} must be at most {limit:g}: lower its high or fixed-value."
    knobs, names = set(config.learner.knobs), set(axes_of(space))
    if knobs != names:
        kind, space_kind = type(config.learner).__name__, type(space).__name__
        yield (
            f"the learner {kind} reads {', '.join(sorted(knobs))}, and the index space {space_kind} has "
            f"{', '.join(sorted(names))}: use an index space with the learner's knobs."
        )


def search_option(name: str) -> str:
    """Return the option that lets the controller search an axis."""
    return f"--index-space.{name.replace('_', '-')}.search"


def needs_search(name: str) -> str:
    """Return the message for an axis that is searched by a controller that searches none."""
    return (
        f"{search_option(name)} needs a controller that searches: choose one by --controller, for example tile-bandit."
    )


def unsearched(space: Any) -> Iterator[str]:
    """Yield the axes that are searched although their space's class holds them by default."""
    for field in fields(space):
        if isinstance(field.default, AxisConfig) and not field.default.search and getattr(space, field.name).search:
            yield field.name


def axis_problems(axis: AxisConfig, section: str) -> Iterator[str]:
    """Yield the problems of one axis."""
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
