"""Health: every rule with its curve, and every metric of the log as a figure."""

from __future__ import annotations

import numpy as np

from gdi.report.document import Block, Figure, Menu, Section, Spark, TableBlock, Text, View, numbers, plotly_text
from gdi.report.health import Finding, findings
from gdi.report.log import series
from gdi.report.material import Material, run_label, thin
from gdi.report.runs import Run
from gdi.scores.tables import Column, Table

MOST_RUNS = 6
SPARK_POINTS = 60
MOST_POINTS = 150
HIDDEN = {"kind", "steps", "frames", "updates", "episodes", "learner/skipped_total"}


def vitals(material: Material) -> Section | None:
    """Return the health of a few runs with all details, and of many as counts."""
    if not any(run.train for run in material.runs):
        return None
    if len(material.runs) > MOST_RUNS:
        return Section("health", "Health", (TableBlock(_counts(material)),))
    blocks: list[Block] = []
    for run in material.runs:
        found = findings(run.train)
        if not found:
            blocks.append(Text(f"{run_label(material, run)} has too few log lines to judge its health."))
            continue
        blocks.append(TableBlock(_rule_table(material, run, found), tuple(map(_spark, found))))
    if metrics := _metrics(material):
        blocks.append(metrics)
    return Section("health", "Health", tuple(blocks))


def _rule_table(material: Material, run: Run, found: list[Finding]) -> Table:
    columns = (
        Column("rule", "rule"),
        Column("value", "now", ".3g"),
        Column("state", "state"),
        Column("healthy", "healthy"),
        Column("measured", "measured"),
        Column("advice", "if not"),
    )
    rows = tuple(
        (
            finding.rule.name,
            finding.value,
            "healthy" if finding.healthy else "NOT healthy",
            finding.rule.healthy,
            finding.rule.measured,
            finding.rule.advice.replace("`", ""),
        )
        for finding in found
    )
    sick = frozenset(number for number, finding in enumerate(found) if not finding.healthy)
    title = "Health over the newest quarter of the log"
    if len(material.runs) > 1:
        title = f"{run_label(material, run)}: {title[0].lower()}{title[1:]}"
    return Table(f"health-{run.name}", title, columns, rows, marked=sick)


def _spark(finding: Finding) -> Spark:
    values = finding.values[thin(len(finding.values), SPARK_POINTS)]
    return Spark(tuple(values.tolist()), finding.rule.low, finding.rule.high)


def _counts(material: Material) -> Table:
    """Return per group how many of its runs obey each rule."""
    judged = [(group, [findings(run.train) for run in group.runs]) for group in material.groups]
    rules = list(dict.fromkeys(finding.rule.name for _, runs in judged for found in runs for finding in found))
    rows = []
    for group, runs in judged:
        cells = []
        for rule in rules:
            states = [finding.healthy for found in runs for finding in found if finding.rule.name == rule]
            cells.append(f"{sum(states)} of {len(states)}" if states else "")
        rows.append((group.agent, group.env, *cells))
    columns = (Column("agent", "agent"), Column("env", "environment"), *(Column(rule, rule) for rule in rules))
    return Table("health", "Runs that obey each rule at the end of their log", columns, tuple(rows))


def _metrics(material: Material) -> Figure | None:
    """Return every single number of the log as a curve, one line per run."""
    names = dict.fromkeys(
        name
        for run in material.runs
        for line in run.train
        for name, value in line.items()
        if name not in HIDDEN and isinstance(value, (int, float))
    )
    views: dict[tuple[str, ...], View] = {}
    for name in names:
        traces = []
        for run in material.runs:
            values = series(run.train, name)
            known = np.flatnonzero(np.isfinite(values))
            if not known.size:
                continue
            kept = known[thin(len(known), MOST_POINTS)]
            look = material.looks[material.agent_of(run)]
            traces.append(
                {
                    "x": numbers(series(run.train, "steps")[kept]),
                    "y": numbers(values[kept], 4),
                    "mode": "lines",
                    "name": plotly_text(run_label(material, run)),
                    "line": {"color": look.color, "dash": look.dash, "width": 1.8},
                    "meta": {"x": "steps", "y": name},
                }
            )
        if traces:
            layout = {"xaxis": {"title": {"text": "steps"}}, "yaxis": {"title": {"text": plotly_text(name)}}}
            views[(name,)] = View(tuple(traces), layout)
    if not views:
        return None
    menu = Menu("metric", {key[0]: key[0] for key in views})
    return Figure("metrics", "Every number of the log, as docs/metrics.md explains it.", views, (menu,))
