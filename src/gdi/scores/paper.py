"""The paper's 15 score tables: the printed cells, and the correct value of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from gdi.scores import metrics
from gdi.scores.agents import Agent, published_agents
from gdi.scores.data import read_csv
from gdi.scores.games import GAMES
from gdi.scores.reference import Reference, load_reference

CAPTIONS = {
    "hns_200m": "Score table of SOTA 200M model-free algorithms on HNS",
    "hns_10b": "Score table of SOTA 10B+ model-free algorithms on HNS",
    "hns_model_based": "Score table of SOTA model-based algorithms on HNS",
    "hns_other": "Score table of other SOTA algorithms on HNS",
    "hwrns_200m": "Score table of SOTA 200M model-free algorithms on HWRNS",
    "hwrns_10b": "Score table of SOTA 10B+ model-free algorithms on HWRNS",
    "hwrns_model_based": "Score table of SOTA model-based algorithms on HWRNS",
    "hwrns_other": "Score table of other SOTA algorithms on HWRNS",
    "saber_200m": "Score table of SOTA 200M model-free algorithms on SABER",
    "saber_10b": "Score table of SOTA 10B+ model-free algorithms on SABER",
    "saber_model_based": "Score table of SOTA model-based algorithms on SABER",
    "saber_other": "Score table of other SOTA algorithms on SABER",
    "ablation": "Score table of the ablation study on HNS",
    "summary": "Experiment results of Atari (Tab. tab:atari_results)",
    "full": "Full performance comparison on Atari (Tab: full performance comparison)",
}

BASELINES = ("random", "human", "world_record")


@dataclass(frozen=True)
class PrintedCell:
    """One cell, verbatim: `quantity` of `agent` for a game, or over all games if `game` is None."""

    table: str
    line: int
    game: str | None
    agent: str
    quantity: str
    text: str

    @property
    def value(self) -> float | None:
        """Return the cell as a number, or None if it is not one (``N/A``, ``441/32``)."""
        try:
            return float(self.text)
        except ValueError:
            return None


def table_names() -> tuple[str, ...]:
    return tuple(CAPTIONS)


def quantity_name(quantity: str) -> str:
    """Format a name: ``learning_efficiency_of_mean_hns`` -> ``learning efficiency of mean HNS``."""
    words = quantity.replace("_", " ")
    return re.sub(r"\b(hns|hwrns|saber|hwrb)\b", lambda match: match[1].upper(), words)


@cache
def printed_cells(table: str) -> tuple[PrintedCell, ...]:
    """Return every printed cell of a table, in reading order."""
    cells = []
    for row in read_csv(f"paper/{table}.csv"):
        head, line = row["row"], int(row["line"])
        for column, text in row.items():
            if column in ("line", "row") or not text:
                continue
            if table == "full":
                cells.append(PrintedCell(table, line, None, head, column, text))
                continue
            agent, _, criterion = column.partition(":")
            game = head if head in GAMES else None
            quantity = (criterion or "score") if game else head
            cells.append(PrintedCell(table, line, game, agent, quantity, text))
    return tuple(cells)


@cache
def paper_agents(reference: str) -> dict[str, Agent]:
    """Return all agents of the paper's tables, and the baselines as further agents.

    The random baseline scores 0%.
    """
    table = load_reference(reference)
    baselines = {name: Agent(name.replace("_", " "), getattr(table, name)[None, :]) for name in BASELINES}
    return {**baselines, **published_agents(reference, ablations=True)}


def aggregate(quantity: str, agent: Agent, reference: Reference) -> float | None:
    """Return a quantity over all games, or None if it is undefined.

    The units are the paper's: percent, years and frames.
    """
    if quantity == "hwrb":
        return float(metrics.hwrb(agent.scores, reference))
    if quantity in ("num_frames", "scale"):
        return agent.frames
    if quantity == "game_time":
        return None if agent.frames is None else metrics.game_time(agent.frames)
    match = re.fullmatch(r"(learning_efficiency_of_)?(mean|median)_(hns|hwrns|saber)", quantity)
    if match is None:
        raise ValueError(f"no such quantity: {quantity}")
    normalized = metrics.CRITERIA[match[3]](agent.scores, reference)
    value = float(metrics.STATISTICS[match[2]](normalized))
    if not match[1]:
        return 100 * value
    if value == 0:  # the random policy learns nothing from any number of frames
        return 0.0
    return None if agent.frames is None else metrics.learning_efficiency(value, agent.frames)


def recompute(cell: PrintedCell, reference: str = "paper") -> float | str | None:
    """Return the correct value of a cell from raw scores; None means "not reported"."""
    table, agent = load_reference(reference), paper_agents(reference)[cell.agent]
    if cell.quantity == "category":
        return agent.category
    if cell.game is None:
        return aggregate(cell.quantity, agent, table)
    index = GAMES.index(cell.game)
    if cell.quantity != "score":
        value = 100 * float(metrics.CRITERIA[cell.quantity](agent.scores, table)[0, index])
    else:
        value = float(agent.scores[0, index])
    return None if np.isnan(value) else value
