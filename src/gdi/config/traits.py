"""Traits: what a kind of controller, learner or index space may say about itself, as class attributes.

A user's own class states only the traits that differ from these defaults. It needs no base class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from gdi.errors import fold

NEAR = 0.8  # similarity from which on an unknown attribute counts as a misspelled trait


@dataclass(frozen=True)
class ControllerTraits:
    """The traits of a controller's config."""

    searches: bool = False
    """The controller chooses λ on the searched axes, so it needs at least one."""
    redraw: Literal["episode", "window"] = "episode"
    """When λ is drawn: for every episode, or also at the start of every window."""
    per_environment: bool = False
    """Every environment has its own controller."""


@dataclass(frozen=True)
class LearnerTraits:
    """The traits of a learner's config."""

    trains_at_once: bool = False
    """A window's uses are all due when it arrives, and are not spread over later windows."""


@dataclass(frozen=True)
class SpaceTraits:
    """The traits of an index space's config."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """How reports write the components of λ. Without a label, a component has its field's name."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """The largest value of a component. The smallest is 0."""


TRAITS: dict[str, type[Any]] = {
    "controller": ControllerTraits,
    "learner": LearnerTraits,
    "index_space": SpaceTraits,
}
Traits = TypeVar("Traits")


def controller_traits(controller: Any) -> ControllerTraits:
    return _read(ControllerTraits, controller)


def learner_traits(learner: Any) -> LearnerTraits:
    return _read(LearnerTraits, learner)


def space_traits(space: Any) -> SpaceTraits:
    return _read(SpaceTraits, space)


def _read(cls: type[Traits], section: Any) -> Traits:
    names = [trait.name for trait in fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: getattr(section, name) for name in names if hasattr(section, name)})


def trait_problems(name: str, section: Any) -> Iterator[str]:
    """Yield the misspelled traits of a section, and those with a value that means nothing."""
    if name not in TRAITS:
        return
    known = {fold(trait.name): trait.name for trait in fields(TRAITS[name])}
    for attribute in _own_attributes(type(section)):
        near = get_close_matches(fold(attribute), known, n=1, cutoff=NEAR)
        if near and attribute not in known.values():
            yield f"{type(section).__name__} has the unknown attribute {attribute}: rename it to {known[near[0]]}."
    for trait, kind in get_type_hints(TRAITS[name]).items():
        value = getattr(section, trait, None)
        if get_origin(kind) is Literal and value not in (None, *get_args(kind)):
            choices = " or ".join(map(repr, get_args(kind)))
            yield f"{type(section).__name__}.{trait} is {value!r}: set it to {choices}."


def _own_attributes(cls: type) -> list[str]:
    """Return the public class attributes that are neither settings nor methods."""
    settings = {setting.name for setting in fields(cls)}
    return [
        name
        for base in cls.__mro__
        for name, value in vars(base).items()
        if not name.startswith("_")
        and name not in settings
        and not callable(value)
        and not isinstance(value, (property, classmethod, staticmethod))
    ]
