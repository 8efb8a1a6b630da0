"""The paper's score tables, rebuilt from raw scores. Only their layout comes from the printed tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeVar

import numpy as np

from gdi.scores import metrics
from gdi.scores.games import GAMES, title
from gdi.scores.paper import BASELINES, CAPTIONS, aggregate, paper_agents, printed_cells, quantity_name
from gdi.scores.reference import load_reference
from gdi.scores.tables import Cell, Column, Table, frames_text

T = TypeVar("T")


def rebuild(name: str, reference: str = "paper") -> Table:
    """Rebuild one of the paper's tables (see `gdi.scores.paper.table_names`) with a reference's numbers."""
    if name == "summary":
        return _summary(reference)
    if name == "full":
        return _full(reference)
    return _games(name, reference)


def _caption(name: str) -> str:
    return f"{CAPTIONS[name]} [{name}], rebuilt"


def _summary(reference: str) -> Table:
    """Build the table with quantities as rows and agents as columns."""
    cells = printed_cells("summary")
    agents, quantities = _distinct(c.agent for c in cells), _distinct(c.quantity for c in cells)
    labels = paper_agents(reference)
    columns = (Column("quantity", ""), *(Column(a, labels[a].name, "s") for a in agents))
    rows = tuple((_label(q), *(_aggregate(q, a, reference) for a in agents)) for q in quantities)
    return Table("summary", _caption("summary"), columns, rows)


def _full(reference: str) -> Table:
    """Build the table with quantities as columns and agents as rows, in the paper's groups."""
    cells = printed_cells("full")
    quantities = _distinct(c.quantity for c in cells)
    lines = _distinct((c.line, c.agent) for c in cells)
    labels = paper_agents(reference)
    columns = (Column("agent", "Algorithms"), *(Column(q, _label(q), "s") for q in quantities))
    rows = tuple((labels[a].name, *(_aggregate(q, a, reference) for q in quantities)) for _, a in lines)
    # The printed table has a rule wherever the lines skip.
    ruled = frozenset(i for i in range(1, len(lines)) if lines[i][0] > lines[i - 1][0] + 1)
    return Table("full", _caption("full"), columns, rows, ruled=ruled)


def _games(name: str, reference: str) -> Table:
    """Build the table with games as rows, and each agent's score and normalized score as columns.

    Aggregates come below.
    """
    criterion = "hns" if name == "ablation" else name.partition("_")[0]
    cells = printed_cells(name)
    agents = _distinct(c.agent for c in cells if c.game)
    quantities = _distinct(c.quantity for c in cells if c.game is None)
    everyone = paper_agents(reference)
    columns = [Column("game", "Games")]
    for a in agents:
        columns.append(Column(a, everyone[a].name, "s"))
        if a not in BASELINES:
            columns.append(Column(f"{a}_{criterion}_percent", f"{criterion.upper()}(%)", "s"))

    def line(label: str, left: dict[str, Cell], right: dict[str, Cell]) -> tuple[Cell, ...]:
        """Return a row with `left` under the agents' scores and `right` under their normalized scores.

        `left` also fills the columns of the baselines.
        """
        row: list[Cell] = [label]
        for a in agents:
            row += [left.get(a, right.get(a, ""))] if a in BASELINES else [left.get(a, ""), right.get(a, "")]
        return tuple(row)

    normalize = metrics.CRITERIA[criterion]
    percent = {a: 100 * normalize(everyone[a].scores, load_reference(reference))[0] for a in agents}
    body = [
        line(
            title(game),
            {a: _number(everyone[a].scores[0, i], "{:.10g}") for a in agents},
            {a: _number(percent[a][i]) for a in agents},
        )
        for i, game in enumerate(GAMES)
    ]
    heads = []
    if "category" in quantities:
        heads.append(line("Category", {a: everyone[a].category for a in agents}, {}))
    heads.append(line("Scale", {a: frames_text(everyone[a].frames or 0) for a in agents if a not in BASELINES}, {}))
    feet = [
        line(_label(q), {}, {a: _aggregate(q, a, reference) for a in agents})
        for q in quantities
        if q not in ("scale", "category")
    ]
    ruled = frozenset({len(heads), len(heads) + len(body)})
    return Table(name, _caption(name), tuple(columns), (*heads, *body, *feet), ruled=ruled)


def _distinct(values: Iterable[T]) -> tuple[T, ...]:
    """Return the distinct items in order of first appearance."""
    return tuple(dict.fromkeys(values))


def _label(quantity: str) -> str:
    words = quantity_name(quantity)
    if quantity == "game_time":
        return "Game time (year)"
    percent = re.fullmatch(r"(mean|median)_\w+", quantity) is not None
    return words[0].upper() + words[1:] + (" (%)" if percent else "")


def _aggregate(quantity: str, agent: str, reference: str) -> str:
    """Format an aggregate in the paper's notation."""
    value = aggregate(quantity, paper_agents(reference)[agent], load_reference(reference))
    if value is None:
        return "N/A"
    if quantity == "hwrb":
        return f"{value:.0f}"
    if quantity == "num_frames":
        return re.sub(r"E\+0*", "E+", f"{value:.2G}")
    if quantity == "game_time":
        return f"{value:.3g}"
    if quantity.startswith("learning_efficiency") and value:
        return f"{value:.2E}"
    return _number(value)


def _number(value: float, pattern: str = "") -> str:
    """Format a score by the pattern, or a percentage with two digits.

    Halves are rounded up, as in the paper: 2740.625 becomes 2740.63.
    """
    if np.isnan(value):
        return "N/A"
    if pattern:
        return pattern.format(value)
    exact = Decimal(f"{value:.9f}")  # without the noise of the last binary digits
    return str(exact.quantize(Decimal("0.01"), ROUND_HALF_UP))
