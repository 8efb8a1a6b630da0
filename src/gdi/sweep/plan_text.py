"""A plan as text: the TOML file that a sweep folder keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from gdi.sweep.plan import NAME, Change, Plan, Value

HEAD = "# The plan of this sweep, as gdi sweep keeps it. gdi sweep with this folder continues it.\n"


def plan_to_toml(plan: Plan) -> str:
    """Return a TOML file that ``read_plan`` reads as an equal plan."""
    lines = [
        f"envs = {_value(plan.envs)}",
        f"presets = {_value(plan.presets)}",
        f"seeds = {_value(seeds_text(plan.seeds))}",
        f"steps = {plan.steps}",
    ]
    if plan.settings:
        lines += ["", "[settings]", *_settings(plan.settings)]
    for section, changes in (("preset", plan.preset), ("variants", plan.variants)):
        for name, change in changes.items():
            lines += ["", f"[{section}.{_key(name)}]", *_change(change)]
    return HEAD + "\n".join(lines) + "\n"


def _change(change: Change) -> Iterator[str]:
    for name, values in (("presets", change.presets), ("envs", change.envs)):
        if values:
            yield f"{name} = {_value(values)}"
    if change.seeds:
        yield f"seeds = {_value(seeds_text(change.seeds))}"
    yield from _settings(change.settings)


def _settings(settings: Mapping[str, Value]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{_text(name)} = {_value(value)}"


def _key(name: str) -> str:
    return name if NAME.fullmatch(name) and "." not in name else _text(name)


def _value(value: Value) -> str:
    """Return a TOML value. Its texts, numbers and lists look like those of JSON."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """Return a TOML string. It differs from that of JSON in one character, which TOML wants as a code."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def seeds_text(seeds: Sequence[int]) -> str:
    """Return seeds as ``0-4,10``."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
