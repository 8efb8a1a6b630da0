"""Evaluations, and the settings in which groups of runs differ."""

from __future__ import annotations

import math

from gdi.report.document import Section, TableBlock
from gdi.report.groups import agent_key, setting_differences
from gdi.report.log import number
from gdi.report.material import Material, run_label
from gdi.report.runs import Run
from gdi.scores.tables import Cell, Column, Table

MOST_ROWS = 300
NORMALIZED = ("hns", "hwrns", "saber")


def evaluations(material: Material) -> Section | None:
    """Return every evaluation of a few runs, or the last and the best one of each of many."""
    runs = [run for run in material.runs if run.evaluations]
    if not runs:
        return None
    total = sum(len(run.evaluations) for run in runs)
    table = _all_rows(material, runs) if total <= MOST_ROWS else _last_rows(material, runs)
    return Section("evaluations", "Evaluations", (TableBlock(table),))


def _all_rows(material: Material, runs: list[Run]) -> Table:
    normalized = any(number(line.get("hns")) == number(line.get("hns")) for run in runs for line in run.evaluations)
    columns = [
        Column("run", "run"),
        Column("steps", "steps", ",.0f"),
        *(Column(name, name, ",.2f") for name in ("mean", "median", "min", "max")),
        Column("episodes", "episodes", ".0f"),
    ]
    if normalized:
        columns += [Column(name, name.upper(), ".1%") for name in NORMALIZED]
    names = ["steps", "mean", "median", "min", "max", "episodes", *(NORMALIZED if normalized else ())]
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        label = run_label(material, run)
        rows += [(label, *(_cell(line.get(name)) for name in names)) for line in run.evaluations]
    return Table("evaluations", "Every evaluation", tuple(columns), tuple(rows))


def _cell(value: object) -> float | None:
    found = number(value)
    return None if math.isnan(found) else found


def _last_rows(material: Material, runs: list[Run]) -> Table:
    columns = (
        Column("run", "run"),
        Column("steps", "steps", ",.0f"),
        Column("last", "last mean", ",.2f"),
        Column("best", "best mean", ",.2f"),
        Column("evaluations", "evaluations", ".0f"),
    )
    rows = []
    for run in runs:
        means = [number(line["mean"]) for line in run.evaluations]
        rows.append((run_label(material, run), run.evaluations[-1]["steps"], means[-1], max(means), len(means)))
    return Table("evaluations", "The last and the best evaluation of each run", columns, tuple(rows))


def differences(material: Material) -> Section | None:
    """Return the settings in which the agents differ, one column per agent."""
    first: dict[str, Run] = {}
    for run in material.runs:
        first.setdefault(agent_key(run), run)
    agents = [material.agent_of(run) for run in first.values()]
    found = setting_differences(list(first.values()))
    if not found:
        return None
    columns = (Column("setting", "setting"), *(Column(agent, agent) for agent in agents))
    rows = tuple((name, *(_shown(value) for value in values)) for name, values in sorted(found.items()))
    table = Table("differences", "Settings that differ", columns, rows)
    return Section("differences", "Differences of the settings", (TableBlock(table),))


def _shown(value: object) -> str:
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
