"""A sweep's plan: environments, presets, seeds, steps and settings, as a TOML file and as a dataclass."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gdi.envs.names import canonical_env_id
from gdi.errors import UserError, did_you_mean
from gdi.presets import PRESETS
from gdi.sweep.peer_settings import PEERS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# The values that a setting may have in a plan.
Value = bool | int | float | str | tuple[bool | int | float | str, ...]
KEYS = ("envs", "presets", "seeds", "steps", "settings", "preset", "variants")
RESTRICTIONS = ("presets", "envs", "seeds")
# A variant is part of a folder's name.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# More seeds than this are a slip, such as 0-40000.
MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Change:
    """Settings for a part of the jobs. An empty restriction is none."""

    settings: Mapping[str, Value] = field(default_factory=dict)
    presets: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def covers(self, preset: str, env: str, seed: int) -> bool:
        """Return True if the change is for such a job."""
        parts = ((preset, self.presets), (env, self.envs), (seed, self.seeds))
        return all(not allowed or value in allowed for value, allowed in parts)


@dataclass(frozen=True)
class Plan:
    """All jobs of a sweep: each preset and each variant of it, on each environment, with each seed."""

    envs: tuple[str, ...]
    presets: tuple[str, ...]
    seeds: tuple[int, ...]
    steps: int
    settings: Mapping[str, Value] = field(default_factory=dict)  # common to all jobs
    preset: Mapping[str, Change] = field(default_factory=dict)  # for one preset
    variants: Mapping[str, Change] = field(default_factory=dict)


def read_plan(path: Path) -> Plan:
    """Return the plan in a file, or raise UserError with the file's name."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not a TOML file: {error}.") from None
    try:
        return plan_of(tree)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def plan_of(tree: Mapping[str, Any]) -> Plan:
    """Return the plan that parsed TOML describes, or raise UserError."""
    for name in tree:
        if name not in KEYS:
            raise UserError(f"unknown key {name!r}.{did_you_mean(name, KEYS)} Keys: {', '.join(KEYS)}.")
    for name in ("envs", "presets", "seeds", "steps"):
        if name not in tree:
            raise UserError(f"{name} is missing: add it.")
    plan = Plan(
        envs=_env_list(tree["envs"]),
        presets=_preset_list(tree["presets"]),
        seeds=_seeds(tree["seeds"]),
        steps=_steps(tree["steps"]),
        settings=flat_settings(_table(tree, "settings"), "settings"),
        preset={name: _change(table, f"preset.{name}") for name, table in _table(tree, "preset").items()},
        variants={name: _change(table, f"variants.{name}") for name, table in _table(tree, "variants").items()},
    )
    _check_names(plan)
    return plan


def _table(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name, {})
    if not isinstance(found, dict):
        raise UserError(f"{name} must be a table: write [{name}].")
    return found


def _change(table: Any, where: str) -> Change:
    if not isinstance(table, dict):
        raise UserError(f"{where} must be a table: write [{where}].")
    own = {name: value for name, value in table.items() if name not in RESTRICTIONS}
    try:
        return Change(
            flat_settings(own, where),
            _preset_list(table["presets"]) if "presets" in table else (),
            _env_list(table["envs"]) if "envs" in table else (),
            _seeds(table["seeds"]) if "seeds" in table else (),
        )
    except UserError as error:
        text = str(error)
        raise UserError(text if text.startswith(where) else f"{where}: {text}") from None


def flat_settings(table: Mapping[str, Any], where: str, path: str = "") -> dict[str, Value]:
    """Return the settings of a table by dotted name. ``"a.b" = 1`` and ``a.b = 1`` mean the same."""
    found: dict[str, Value] = {}
    for name, value in table.items():
        dotted = f"{path}{name}".replace("-", "_")
        if isinstance(value, dict):
            found |= flat_settings(value, where, f"{dotted}.")
        elif isinstance(value, list) and all(isinstance(item, (bool, int, float, str)) for item in value):
            found[dotted] = tuple(value)
        elif isinstance(value, (bool, int, float, str)):
            found[dotted] = value
        else:
            raise UserError(f"{where}.{dotted} must be a number, a text, true, false or a list of these.")
    return found


def _names(value: Any, what: str) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word.strip() for word in words):
        raise UserError(f"{what} must be a list of names.")
    return tuple(dict.fromkeys(word.strip() for word in words))


def _env_list(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(canonical_env_id(name) for name in _names(value, "envs")))


def _preset_list(value: Any) -> tuple[str, ...]:
    known = (*PRESETS, *PEERS)
    for name in (found := _names(value, "presets")):
        if name not in known:
            raise UserError(f"unknown preset {name!r}.{did_you_mean(name, known)} Presets: {', '.join(known)}.")
    return found


def _seeds(value: Any) -> tuple[int, ...]:
    """Parse ``5``, ``[0, 1, 2]`` or a text such as ``0-4`` or ``0-4,10``."""
    if isinstance(value, str):
        return parse_seeds(value)
    seeds = [value] if type(value) is int else value
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UserError('seeds must be a list of whole numbers, or a text such as "0-4".')
    return tuple(sorted(set(seeds)))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse seeds such as ``0-4`` or ``0-4,10``; raise UserError for anything else."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", part)
        if match is None:
            raise UserError(f"seeds {text!r} cannot be read: write them as 0-4 or 0,1,2.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UserError(f"{part.strip()!r} is not a range: write the smaller seed first, as in {last}-{first}.")
        if last - first >= MOST_SEEDS:
            raise UserError(f"{part.strip()!r} has too many seeds: write at most {MOST_SEEDS}.")
        found |= set(range(first, last + 1))
    return tuple(sorted(found))


def _steps(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or value < 1:
        raise UserError(f"steps must be a whole number greater than 0, not {value!r}.")
    return value


def _check_names(plan: Plan) -> None:
    """Raise UserError for a table that belongs to no job, or for a variant that cannot name a folder."""
    for name, change in plan.preset.items():
        _check_listed(f"preset.{name}", (name, *change.presets), plan.presets, "presets")
        if change.presets:
            raise UserError(f"preset.{name} is for the preset {name} alone: drop presets.")
    for name in plan.variants:
        if not NAME.fullmatch(name):
            raise UserError(f"variants.{name}: a name has letters, digits, dots, dashes and underscores only.")
        if not plan.variants[name].settings:
            raise UserError(f"variants.{name} changes no setting: add one, or drop the variant.")
    for where, change in (*_tables("preset", plan.preset), *_tables("variants", plan.variants)):
        _check_listed(where, change.presets, plan.presets, "presets")
        _check_listed(where, change.envs, plan.envs, "envs")
        _check_listed(where, change.seeds, plan.seeds, "seeds")


def _tables(name: str, changes: Mapping[str, Change]) -> list[tuple[str, Change]]:
    return [(f"{name}.{key}", change) for key, change in changes.items()]


def _check_listed(where: str, values: Iterable[object], listed: Iterable[object], what: str) -> None:
    for value in values:
        if value not in listed:
            raise UserError(f"{where} names {value}, which is not among the plan's {what}: add it there.")
