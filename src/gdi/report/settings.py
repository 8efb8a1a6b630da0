"""Tolerant reading of a run's ``config.json``: no class of it is imported, and damage does not stop a report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gdi.config import AxisConfig
from gdi.config.index_space import axis_problems
from gdi.config.json import KIND_SECTIONS, kinds
from gdi.config.upgrade import upgrade
from gdi.errors import UserError
from gdi.index_space import Axis, make_axis


@dataclass(frozen=True)
class Settings:
    """The settings of a run, as far as they can be read."""

    tree: Mapping[str, Any] = field(default_factory=dict)  # the whole config as plain JSON in the current format
    preset: str = ""
    scale: str = ""
    env: str = ""
    seed: int | None = None
    steps: int | None = None
    names: tuple[str, ...] = ()  # the components of λ
    labels: Mapping[str, str] = field(default_factory=dict)
    axes: tuple[Axis, ...] = ()  # those that the controller searches
    controller: str = ""  # the kind
    problem: str = ""  # the reason why the file could not be read

    @property
    def own_classes(self) -> dict[str, str]:
        """The user's own classes, by section: ``{"controller": "EliteConfig"}``."""
        kinds_of = {name: _text(_section(self.tree, name).get("kind")) for name in KIND_SECTIONS}
        return {name: kind.rpartition(":")[2] for name, kind in kinds_of.items() if ":" in kind}

    @property
    def agent(self) -> str:
        """The name of the agent: its preset, and the user's own classes in it."""
        own = [f"{name.replace('_', ' ')} {cls}" for name, cls in self.own_classes.items()]
        return ", ".join([self.preset, *own]) if self.preset else ""

    def label_of(self, name: str) -> str:
        return self.labels.get(name, name)


def read_settings(path: Path) -> Settings:
    """Return the settings in a config file; ``problem`` says if it is missing or damaged."""
    try:
        tree = upgrade(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Settings(problem=f"{path.name} is missing")
    except UserError as error:
        return Settings(problem=str(error).removesuffix("."))
    except (OSError, ValueError, RecursionError):
        return Settings(problem=f"{path.name} is damaged")
    if not isinstance(tree, dict):
        return Settings(problem=f"{path.name} is damaged")
    return settings_of(tree)


def settings_of(tree: Mapping[str, Any]) -> Settings:
    """Return the settings in the parsed JSON of a config."""
    space = _section(tree, "index_space")
    axes = {name: axis for name, value in space.items() if (axis := _axis_config(name, value)) is not None}
    seed, steps = tree.get("seed"), tree.get("steps")
    return Settings(
        tree=tree,
        preset=_text(tree.get("preset")),
        scale=_text(tree.get("scale")),
        env=_text(_section(tree, "env").get("id")),
        seed=seed if type(seed) is int else None,
        steps=steps if type(steps) is int and steps > 0 else None,
        names=tuple(axes),
        labels=_labels(_text(space.get("kind"))),
        axes=tuple(make_axis(name, axis) for name, axis in axes.items() if axis.search),
        controller=_text(_section(tree, "controller").get("kind")),
    )


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of every setting."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _section(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _labels(kind: str) -> Mapping[str, str]:
    """Return the labels of one of our index spaces. A user's own space has its field names as labels."""
    labels: Mapping[str, str] = getattr(kinds("index_space").get(kind), "labels", {})
    return labels


def _axis_config(name: str, value: Any) -> AxisConfig | None:
    """Return the axis of a component of λ, or None if the setting is none."""
    if not isinstance(value, dict) or set(value) != {f.name for f in fields(AxisConfig)}:
        return None
    numbers = [value[key] for key in ("low", "high", "block_width", "fixed_value")]
    if not all(type(n) in (int, float) and math.isfinite(n) for n in numbers):
        return None
    if value["coordinate"] not in ("linear", "log") or type(value["search"]) is not bool:
        return None
    axis = AxisConfig(**value)
    return None if any(True for _ in axis_problems(axis, name)) else axis
