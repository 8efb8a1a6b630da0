"""Grouping of runs: those that are equal up to the seed are one group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gdi.report.runs import Run
from gdi.report.settings import leaves

# A label with more differences than this could not be read.
MOST_IN_LABEL = 2


@dataclass(frozen=True)
class Group:
    """The runs of one agent in one environment, which differ in the seed only."""

    agent: str
    env: str
    runs: tuple[Run, ...]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups in the order of their first runs. A run without readable settings is alone."""
    by_group: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        by_group.setdefault((agent_key(run), run.env), []).append(run)
    labels = agent_labels(runs)
    return [Group(labels[key], env, tuple(found)) for (key, env), found in by_group.items()]


def agent_key(run: Run) -> str:
    """Return a text that is equal for two runs if their settings are, up to seed and environment."""
    if run.settings.problem:
        return str(run.folder.resolve())
    return run.agent + json.dumps(_without_seed_and_env(run.settings.tree), sort_keys=True)


def _without_seed_and_env(tree: Mapping[str, Any]) -> dict[str, Any]:
    out = {name: value for name, value in tree.items() if name != "seed"}
    if isinstance(out.get("env"), dict):
        out["env"] = {name: value for name, value in out["env"].items() if name != "id"}
    return out


def agent_labels(runs: Sequence[Run]) -> dict[str, str]:
    """Return a label per agent: its preset, with the settings that tell it from others of that preset."""
    first: dict[str, Run] = {}
    for run in runs:
        first.setdefault(agent_key(run), run)
    by_name: dict[str, list[str]] = {}
    for key, run in first.items():
        by_name.setdefault(run.agent or run.settings.agent or run.name, []).append(key)
    labels = {}
    for name, keys in by_name.items():
        differing = setting_differences([first[key] for key in keys])
        for place, key in enumerate(keys):
            labels[key] = _label(name, place, len(keys), differing)
    return labels


def _label(name: str, place: int, count: int, differing: Mapping[str, Sequence[Any]]) -> str:
    if count == 1:
        return name
    if 0 < len(differing) <= MOST_IN_LABEL:
        told = ", ".join(f"{setting.split('.')[-1]} {values[place]}" for setting, values in differing.items())
        return f"{name} ({told})"
    return f"{name} #{place + 1}"


def setting_differences(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the settings that differ between runs, by dotted name: one value per run, or None where it is absent.

    Seed and environment are left out, because groups tell them.
    """
    flat = [dict(leaves(_without_seed_and_env(run.settings.tree))) for run in runs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {name: found for name, found in values.items() if any(value != found[0] for value in found)}
