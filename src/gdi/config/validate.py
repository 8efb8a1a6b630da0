"""Validation of a config. Each section reports its own problems."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gdi.config.checks import not_negative, positive
from gdi.config.controller import FixedConfig
from gdi.config.index_space import needs_search, space_problems, unsearched
from gdi.config.json import kinds
from gdi.config.traits import trait_problems
from gdi.config.whole import SECTIONS, Config
from gdi.errors import UserError

# In these fields, infinity means "no limit".
UNLIMITED_FIELDS = ("rho_bar", "c_bar", "clip_norm", "hang_seconds", "stall_seconds")
# The largest value of a number whose dataclass says no other in ``at_most``. Larger ones are slips, or exhaust memory.
LARGEST_WHOLE, LARGEST_FLOAT = 10**12, 1_000_000_000
LARGEST_OF = {"seed": 2**63 - 1, "learning_rate": 1e30}  # a float32 holds this rate
# What a user's own kinds need, as their author would write it.
NEEDED = {
    "controller": {"build": "build(space, rng), which returns the controller"},
    "learner": {
        "knobs": "knobs, the names of the components of λ that it reads",
        "build": "build(config), which returns the algorithm",
    },
}
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def shown(value: Any) -> str:
    """Return a value as a message shows it: shortened if it is long or deeply nested."""
    return _SHORT.repr(value)


def validate(config: Config) -> Config:
    """Return the config, or raise UserError with its first problem."""
    check_types(config, "--")
    for problem in problems(config):
        raise UserError(problem)
    return config


def check_new(config: Config) -> None:
    """Raise UserError for what does nothing in a new run. Runs of earlier versions that have it still open.

    The fixed controller searches no axis. The paper's ablation has it with axes that are searched by default.
    """
    if isinstance(config.controller, FixedConfig):
        for name in unsearched(config.index_space):
            raise UserError(needs_search(name))


def problems(config: Config) -> Iterator[str]:
    """Yield all problems, section by section."""
    for name in SECTIONS:
        section = getattr(config, name)
        yield from trait_problems(name, section)
        if name == "env":  # the environment comes first, because a run without one has no other problem to fix
            yield from section.problems(config)
            yield from positive(config, "", "steps")
            yield from not_negative(config, "", "seed")
            yield from _own_kind_problems(config)
        elif name == "index_space":
            yield from space_problems(section, config)
        elif hasattr(section, "problems"):
            yield from section.problems(config)


def _own_kind_problems(config: Config) -> Iterator[str]:
    """Yield what a user's own controller or learner lacks. A subclass of one of ours needs nothing of its own."""
    for name, needed in NEEDED.items():
        section = getattr(config, name)
        if isinstance(section, tuple(kinds(name).values())):
            continue
        for member, signature in needed.items():
            if not hasattr(section, member):
                yield f"--{name} is {type(section).__name__}, which has no {signature}: add it to the class."


def check_types(section: Any, prefix: str) -> None:
    """Check that every value has its field's type, every number is finite, and every choice is known.

    This also covers configs made in Python.
    """
    hints = _hints(type(section))  # type: ignore[arg-type]  # mypy takes no type[Any] for hashable
    for f in fields(section):
        value, kind, name = getattr(section, f.name), hints[f.name], f"{prefix}{f.name.replace('_', '-')}"
        if not f.compare:
            continue  # an object of this process, which is not part of the config's text
        if is_dataclass(value):
            check_types(value, f"{name}.")
        elif any(is_dataclass(member) for member in (kind, *get_args(kind))):
            raise UserError(f"{name} must be a config dataclass, not {shown(value)}.")
        else:
            _check_value(value, kind, name, may_be_infinite=f.name in UNLIMITED_FIELDS)
            _check_size(value, name, f.name, getattr(type(section), "at_most", {}).get(f.name))


@cache
def _hints(section: type[Any]) -> dict[str, Any]:
    """Return the types of a section's fields. Python compiles them from text at each call."""
    return get_type_hints(section)


def _check_size(value: Any, name: str, field: str, most: float | None) -> None:
    """Check that no number is larger than ``most``, the bound of a size, or than the default for its type."""
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, bool) or not isinstance(item, (int, float)) or item == math.inf:
            continue
        limit = most or LARGEST_OF.get(field) or (LARGEST_WHOLE if isinstance(item, int) else LARGEST_FLOAT)
        if abs(item) > limit:
            why = ": more does not fit in memory, or takes forever" if most else ""
            text = f"{limit:,}" if isinstance(limit, int) else f"{limit:,g}"
            raise UserError(f"{name} must be at most {text}, not {shown(item)}{why}.")


def _check_value(value: Any, kind: Any, name: str, *, may_be_infinite: bool) -> None:
    repeated = get_origin(kind) is tuple
    if repeated and not isinstance(value, tuple):
        raise UserError(f"{name} must be a tuple, not {shown(value)}.")
    inner = get_args(kind)[0] if repeated else kind
    for item in value if repeated else (value,):
        if get_origin(inner) is Literal:
            if item not in get_args(inner):
                raise UserError(f"{name} must be one of {', '.join(map(str, get_args(inner)))}, not {shown(item)}.")
        elif isinstance(item, bool) != (inner is bool) or not isinstance(
            item, (int, float) if inner is float else inner
        ):
            raise UserError(f"{name} must be of type {inner.__name__}, not {shown(item)}.")
        elif inner is float and not (
            isinstance(item, int) or math.isfinite(item) or (item == math.inf and may_be_infinite)
        ):
            raise UserError(f"{name} must be a finite number, not {item!r}.")
