"""What E did: per axis, the probability, value and count of each block over the run, and one sentence about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gdi.index_space import Axis
from gdi.report.document import Block, Figure, Menu, Section, TableBlock, Text, View, grid, numbers, plotly_text
from gdi.report.log import AxisBelief
from gdi.report.material import Material, run_label, thin
from gdi.report.runs import Run
from gdi.report.sections.held import without_beliefs
from gdi.report.verdicts import Verdict, judge_axis, phrase_of, sentence
from gdi.scores.tables import Column, Table

# The numbers of all heatmaps together: what fits into a page that is sent by mail.
CELLS = {True: 44_000, False: 120_000}  # for one run, for many
MOST_COLUMNS = 130
MOST_RUNS = 12
QUANTITIES = {"probability": "probability", "value": "value", "count": "episodes"}
COLORBARS = {"probability": "probability (%)", "value": "value (standardized return)", "count": "episodes"}
LABEL_SPACE = 0.07  # of the axis
WIDE_AXIS_TICKS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


def control(material: Material) -> Section | None:
    """Return what E did, as heatmaps where a run logged its beliefs, and as the λ of its episodes otherwise."""
    believing = [run for run in material.runs if beliefs(run)]
    blocks: list[Block] = []
    if len(believing) == 1:
        blocks.append(Text(summary(believing[0]), "summary"))
    elif believing:
        blocks.append(TableBlock(_verdict_table(material, believing)))
    if believing:
        blocks.append(_heatmaps(material, believing[:MOST_RUNS]))
        if len(believing) > MOST_RUNS:
            blocks.append(Text(f"The figure has the first {MOST_RUNS} of {len(believing)} runs.", "note"))
    blocks += without_beliefs(material, [run for run in material.runs if not beliefs(run)])
    return Section("control", "What E did", tuple(blocks)) if blocks else None


def beliefs(run: Run) -> dict[str, AxisBelief]:
    """Return the beliefs that a run logged, by axis."""
    found = {axis.name: run.belief(axis.name) for axis in run.settings.axes}
    return {name: belief for name, belief in found.items() if belief is not None}


def verdicts(run: Run) -> dict[str, Verdict]:
    """Return what E did to each axis of which the run logged beliefs."""
    found = beliefs(run)
    return {axis.name: judge_axis(axis, found[axis.name]) for axis in run.settings.axes if axis.name in found}


def summary(run: Run) -> str:
    """Return the sentence about what E did in a run."""
    found = verdicts(run)
    return sentence([run.settings.label_of(name) for name in found], list(found.values()))


def _verdict_table(material: Material, runs: Sequence[Run]) -> Table:
    """Return what E did in every run, one row each."""
    names = list(dict.fromkeys(axis.name for run in runs for axis in run.settings.axes))
    labels = {name: next(run.settings.label_of(name) for run in runs if name in run.settings.names) for name in names}
    rows = []
    for run in runs:
        found = verdicts(run)
        cells = (phrase_of(labels[name], found[name]) if name in found else "not searched" for name in names)
        rows.append((run_label(material, run), *cells))
    columns = (Column("run", "run"), *(Column(name, labels[name]) for name in names))
    return Table("verdicts", "What E did to each component of λ", columns, tuple(rows))


def _heatmaps(material: Material, runs: Sequence[Run]) -> Figure:
    by_run = {str(number): run for number, run in enumerate(runs)}
    labels = {name: run.settings.label_of(name) for run in runs for name in beliefs(run)}
    blocks = sum(axis.num_blocks for run in runs for axis in run.settings.axes)
    columns = max(10, min(MOST_COLUMNS, CELLS[len(material.runs) == 1] // (len(QUANTITIES) * blocks)))
    views: dict[tuple[str, ...], View] = {
        (key, axis.name, quantity): _heatmap(axis, run.settings.label_of(axis.name), belief, quantity, columns)
        for key, run in by_run.items()
        for axis in run.settings.axes
        if (belief := beliefs(run).get(axis.name)) is not None
        for quantity in QUANTITIES
    }
    menus = (
        Menu("run", {key: run_label(material, run) for key, run in by_run.items()}),
        Menu("component of λ", labels),
        Menu("quantity", QUANTITIES, tabs=True),
    )
    caption = (
        "Each column is the controller's belief at one log line, and each row a block of values. The line is the best "
        "block, which evaluation would choose."
    )
    return Figure("control", caption, views, menus, height=430)


def _heatmap(axis: Axis, label: str, belief: AxisBelief, quantity: str, columns: int) -> View:
    kept = thin(len(belief.steps), columns)
    matrix = getattr(belief, quantity)[kept]
    factor = 100.0 if quantity == "probability" else 1.0
    steps = belief.steps[kept]
    best = axis.low + (belief.best_block[kept] + 0.5) * axis.block_width
    edges = axis.low + np.arange(axis.num_blocks + 1) * axis.block_width
    heat = {
        "type": "heatmap",
        "name": f"{QUANTITIES[quantity]} of each block",
        "x": numbers([0.0, *steps]),
        "y": numbers(edges),
        "z": grid(factor * matrix.T, digits=3),
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": COLORBARS[quantity], "side": "right"}, "thickness": 14},
        "hovertemplate": "%{x:,} steps<br>%{z}<extra></extra>",
        "meta": {"rows": [f"{axis.to_value(float(edge)):.4g}" for edge in edges[:-1] + axis.block_width / 2]},
    }
    line = {
        "x": numbers(steps),
        "y": numbers(best),
        "customdata": numbers([axis.to_value(float(x)) for x in best], 3),
        "mode": "lines",
        "name": "best block",
        "line": {"color": "#ff5a36", "width": 2, "shape": "vh"},
        "hovertemplate": "%{x:,} steps<br>best %{customdata}<extra></extra>",
        "showlegend": True,
        "meta": {"x": "steps", "y": "coordinate"},
    }
    return View((heat, line), {"xaxis": {"title": {"text": "steps"}}, "yaxis": value_axis(axis, label)})


def value_axis(axis: Axis, label: str) -> dict[str, Any]:
    """Return an axis of the figure that is even in the coordinate, with real values as ticks."""
    layout: dict[str, Any] = {"title": {"text": plotly_text(label)}, "range": [axis.low, axis.high]}
    if axis.logarithmic:
        low, high = axis.to_value(axis.low), axis.to_value(axis.high)
        ticks = _spaced([value for value in WIDE_AXIS_TICKS if low <= value <= high], axis)
        layout |= {"tickvals": numbers([axis.to_coordinate(value) for value in ticks])}
        layout |= {"ticktext": [f"{value:g}" for value in ticks]}
    return layout


def _spaced(values: Sequence[float], axis: Axis) -> list[float]:
    """Return the values whose labels do not overlap on the axis."""
    kept: list[float] = []
    for value in values:
        if not kept or axis.to_coordinate(value) - axis.to_coordinate(kept[-1]) >= LABEL_SPACE * (axis.high - axis.low):
            kept.append(value)
    return kept
