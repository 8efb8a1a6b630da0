"""Finds the first thing in a config that cannot work, and says why. Each section tells its own problems."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gdi.config.checks import not_negative, positive
from gdi.config.index_space import space_problems
from gdi.config.whole import SECTIONS, Config
from gdi.errors import UserError

# Fields where infinity means "no limit".
MAY_BE_INFINITE = ("rho_bar", "c_bar", "clip_norm", "hang_seconds", "stall_seconds")


def validate(config: Config) -> Config:
    """Return the config, or raise UserError with the first thing that cannot work and why."""
    check_types(config, "--")
    for problem in problems(config):
        raise UserError(problem)
    return config


def problems(config: Config) -> Iterator[str]:
    """Everything that cannot work, section by section."""
    for name in SECTIONS:
        section = getattr(config, name)
        if name == "env":  # the environment first: without it nothing else is worth saying
            yield from section.problems(config)
            yield from positive(config, "", "steps")
            yield from not_negative(config, "", "seed")
        elif name == "index_space":
            yield from space_problems(section, config)
        elif hasattr(section, "problems"):
            yield from section.problems(config)


def check_types(section: Any, prefix: str) -> None:
    """Every value is of its field's type, every number finite, every choice known, also in configs made in Python."""
    hints = get_type_hints(type(section))
    for f in fields(section):
        value, kind, name = getattr(section, f.name), hints[f.name], f"{prefix}{f.name.replace('_', '-')}"
        if is_dataclass(value):
            check_types(value, f"{name}.")
        elif any(is_dataclass(member) for member in (kind, *get_args(kind))):
            raise UserError(f"{name} must be a config dataclass, not {value!r}.")
        else:
            _check_value(value, kind, name, may_be_infinite=f.name in MAY_BE_INFINITE)


def _check_value(value: Any, kind: Any, name: str, *, may_be_infinite: bool) -> None:
    repeated = get_origin(kind) is tuple
    if repeated and not isinstance(value, tuple):
        raise UserError(f"{name} must be a tuple, not {value!r}.")
    inner = get_args(kind)[0] if repeated else kind
    for item in value if repeated else (value,):
        if get_origin(inner) is Literal:
            if item not in get_args(inner):
                raise UserError(f"{name} must be one of {', '.join(map(str, get_args(inner)))}, not {item!r}.")
        elif isinstance(item, bool) != (inner is bool) or not isinstance(
            item, (int, float) if inner is float else inner
        ):
            raise UserError(f"{name} must be of type {inner.__name__}, not {item!r}.")
        elif inner is float and not (math.isfinite(item) or (item == math.inf and may_be_infinite)):
            raise UserError(f"{name} must be a finite number, not {item!r}.")
