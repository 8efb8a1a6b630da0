"""Probability of improvement: how often a run of one agent beats a run of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gdi.report.document import Block, Figure, TableBlock, Text, View, grid, plotly_text
from gdi.report.material import cell_of
from gdi.scores import runs as scored
from gdi.scores.tables import Cell, Column, Estimate, Table


def in_order(runs: Sequence[scored.Run], agents: Sequence[str]) -> list[str]:
    """Return the agents in the order in which pairs are compared: those with more runs first, then by name."""
    counts = {agent: sum(run.agent == agent for run in runs) for agent in agents}
    return sorted(agents, key=lambda agent: (-counts[agent], agent))


def improvement_table(runs: Sequence[scored.Run], agents: Sequence[str], envs: Sequence[str]) -> Table:
    """Return P(X > Y) of every pair of agents, once: the other direction is 1 - P."""
    columns = (
        Column("pair", "pair"),
        Column("probability", "P", ".2f"),
        Column("games", "games", ".0f"),
        Column("ahead", "higher mean in", ".0f"),
        Column("verdict", "the first is"),
    )
    words = {"held": "better", "not held": "worse"}
    ordered = in_order(runs, agents)
    rows: list[tuple[Cell, ...]] = []
    for i, first in enumerate(ordered):
        for second in ordered[i + 1 :]:
            found = scored.compare(runs, first, second, envs)
            verdict = words.get(found.verdict, found.verdict)
            rows.append((f"{first} over {second}", cell_of(found.probability), found.games, found.ahead, verdict))
    note = (
        "P is the probability that a run of the first agent scores above a run of the second in a random game. The "
        "first is better if the whole 95% bootstrap interval is above 0.5. With few seeds, intervals are too narrow."
    )
    return Table("improvement", "Probability of improvement", columns, tuple(rows), notes=(note,))


def improvement(runs: Sequence[scored.Run], agents: Sequence[str], envs: Sequence[str]) -> Iterator[Block]:
    table = improvement_table(runs, agents, envs)
    if all(row[1] is None for row in table.rows):
        yield Text("No two agents have an environment in common, so they are not compared.", "note")
        return
    yield _improvement_figure(runs, agents, table)
    yield TableBlock(table)


def _improvement_figure(runs: Sequence[scored.Run], agents: Sequence[str], table: Table) -> Figure:
    ordered = in_order(runs, agents)
    matrix = np.full((len(ordered), len(ordered)), np.nan)
    cells = iter(table.rows)
    for i in range(len(ordered)):
        for j in range(i + 1, len(ordered)):
            cell = next(cells)[1]
            value = cell.value if isinstance(cell, Estimate) else cell
            if isinstance(value, (int, float)):
                matrix[i, j], matrix[j, i] = value, 1 - value
    names = [plotly_text(agent) for agent in ordered]
    heat = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": grid(matrix),
        "zmin": 0,
        "zmax": 1,
        "colorscale": "Cividis",
        "texttemplate": "%{z:.2f}",
        "hovertemplate": "%{y} over %{x}: %{z:.2f}<extra></extra>",
        "colorbar": {"thickness": 14},
    }
    layout = {"xaxis": {"title": {"text": "over"}}, "yaxis": {"autorange": "reversed"}}
    caption = "Probability that a run of the agent in the row beats one of the agent in the column in a random game."
    view = View((heat,), {**layout, "height": 220 + 32 * len(names)})
    return Figure("improvement", caption, {(): view}, height=400)
