"""Likely causes for printed numbers that differ from the recomputed ones.

`_hypotheses` lists what may have happened, in order of plausibility. Examples are "the table's own raw score was used",
"truncated instead of rounded" and "divided by one game too many". Each is a small function that computes the number
that would then be printed. The first one that gives the printed number is reported.

The last functions of each list (`_implied_score`, `_stale_score`, ...) are fallbacks: they say what the number would
need.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np

from gdi.scores import metrics
from gdi.scores.agents import published_agents
from gdi.scores.games import GAMES, title
from gdi.scores.paper import PrintedCell, aggregate, paper_agents, printed_cells, quantity_name, recompute, table_names
from gdi.scores.reference import load_reference
from gdi.scores.rounding import agrees, format_like, last_digit_unit

Hypothesis = Callable[[PrintedCell, float, str], str | None]


def likely_cause(cell: PrintedCell, expected: float, reference: str) -> str:
    """Describe the first hypothesis that gives the printed text."""
    for hypothesis in _hypotheses(cell):
        found = hypothesis(cell, expected, reference)
        if found:
            return found
    return "no explanation found"


def _hypotheses(cell: PrintedCell) -> tuple[Hypothesis, ...]:
    if cell.quantity == "score":
        return (_rounded_score, _another_score, _pasted_cell, _misprint, _stale_score)
    if cell.game is not None:
        return (
            _unreadable,
            _own_raw_score,
            _as_fraction,
            _other_criterion,
            _misprint,
            _truncated,
            _implied_score,
        )
    if cell.quantity.startswith("learning_efficiency"):
        return (_truncated, _follows_printed, _other_quantity, _printed_otherwise, _implied_aggregate)
    return (_truncated, _alternative_score, _one_game_too_many, _misprint, _printed_otherwise, _implied_sum)


def _unreadable(cell: PrintedCell, expected: float, reference: str) -> str | None:
    if cell.value is None and agrees(cell.text.replace("/", "."), expected):
        return "a slash where the decimal point belongs"
    return None


def _truncated(cell: PrintedCell, expected: float, reference: str) -> str | None:
    if cell.value is None:
        return None
    scaled = expected / last_digit_unit(cell.text)
    cut = np.trunc(scaled) * last_digit_unit(cell.text)
    return f"truncated, not rounded ({expected:.6g})" if agrees(cell.text, float(cut)) else None


def _misprint(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Check for one wrong digit, or two swapped neighbors, in an otherwise equal number.

    The number must have at least four digits.
    """
    right = f"{expected:.10g}" if cell.quantity == "score" else format_like(expected, cell.text)
    if len(right) != len(cell.text) or len(re.sub(r"\D", "", right)) < 4:
        return None
    wrong = [i for i, (a, b) in enumerate(zip(right, cell.text, strict=True)) if a != b]
    if len(wrong) == 2 and wrong[1] == wrong[0] + 1 and sorted(right) == sorted(cell.text):
        return "two digits exchanged"
    if len(wrong) != 1:
        return None
    if cell.game is not None and cell.quantity != "score":
        again = sum(c.game == cell.game and c.agent == cell.agent and c.text == cell.text for c in _all_cells())
        # The same error in two tables is more likely one outdated number.
        return (
            "one digit misprinted"
            if again == 1
            else f"one digit misprinted, or {_implied_score(cell, expected, reference)}"
        )
    return f"one digit misprinted{_needed_by_column(cell, expected)}"


def _needed_by_column(cell: PrintedCell, expected: float) -> str:
    """Count the normalized cells that prove the other value of a baseline that is printed once."""
    if cell.quantity != "score" or cell.agent != "human":
        return ""
    index = GAMES.index(str(cell.game))
    random = float(load_reference("printed").random[index])
    agents = published_agents("paper", ablations=True)
    votes = {"printed": 0, "needed": 0}
    for other in _all_cells():
        if other.game != cell.game or other.quantity != "hns" or other.value is None:
            continue
        score = float(agents[other.agent].scores[0, index])
        for name, human in (("printed", cell.value), ("needed", expected)):
            votes[name] += human is not None and agrees(other.text, 100 * (score - random) / (human - random))
    return f": {votes['needed']} printed HNS of this game need {expected:.10g}, {votes['printed']} the printed value"


def _own_raw_score(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Try the row's own printed raw score, if it differs from the other tables."""
    raw = next(
        (
            c.value
            for c in printed_cells(cell.table)
            if c.line == cell.line and c.agent == cell.agent and c.quantity == "score"
        ),
        None,
    )
    if raw is None or not agrees(cell.text, _normalized(cell, raw, reference)):
        return None
    return f"computed from {raw:.10g}, the score printed next to it, which other tables contradict"


def _as_fraction(cell: PrintedCell, expected: float, reference: str) -> str | None:
    if agrees(cell.text, expected / 100):
        return "a fraction in a column of percentages"
    index = GAMES.index(str(cell.game))
    scores = paper_agents(reference)[cell.agent].scores
    if cell.quantity == "saber" and agrees(
        cell.text, float(metrics.hwrns(scores, load_reference(reference))[0, index])
    ):
        return "the HWRNS as a fraction, neither in percent nor capped at 200%"
    return None


def _other_criterion(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Try another criterion of the same agent and game."""
    index = GAMES.index(str(cell.game))
    scores = paper_agents(reference)[cell.agent].scores
    for name, criterion in metrics.CRITERIA.items():
        value = 100 * float(criterion(scores, load_reference(reference))[0, index])
        if name != cell.quantity and agrees(cell.text, value):
            return (
                "not capped at 200%" if (name, cell.quantity) == ("hwrns", "saber") else f"this is its {name.upper()}"
            )
        if name == "hns" and cell.quantity == "saber" and agrees(cell.text, min(value, 200.0)):
            return "this is its HNS, capped at 200%"
    return None


def _implied_score(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Return the raw score that the normalized one would need."""
    if cell.value is None:
        return None
    index = GAMES.index(str(cell.game))
    table = load_reference(reference)
    top = table.human[index] if cell.quantity == "hns" else table.world_record[index]
    raw = table.random[index] + cell.value / 100 * (top - table.random[index])
    number = f"{raw:,.0f}" if abs(raw) >= 1000 else f"{raw:.4g}"
    return f"the score of an earlier run (it needs about {number}, which no table prints)"


def _rounded_score(cell: PrintedCell, expected: float, reference: str) -> str | None:
    if not agrees(cell.text, expected):
        return None
    needed = [
        c for c in _all_cells() if c.game == cell.game and c.agent == cell.agent and c.quantity in metrics.CRITERIA
    ]
    proof = sum(agrees(c.text, _normalized(c, expected, reference)) for c in needed)
    against = sum(cell.value is not None and agrees(c.text, _normalized(c, cell.value, reference)) for c in needed)
    right = f"{expected:.10g}"
    return f"rounded: {proof} of its {len(needed)} printed normalized scores fit {right}, {against} fit {cell.text}"


def _pasted_cell(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Find another cell whose normalized score is this number of five digits or more."""
    if len(re.sub(r"\D", "", cell.text)) < 4 or "." not in cell.text:
        return None
    index = GAMES.index(str(cell.game))
    scores = paper_agents(reference)[cell.agent].scores
    for name, criterion in metrics.CRITERIA.items():
        if agrees(cell.text, 100 * float(criterion(scores, load_reference(reference))[0, index])):
            return f"this is its {name.upper()}, not its score"
    for other in _all_cells():
        if other.quantity in metrics.CRITERIA and other.text == cell.text and other.game is not None:
            label = paper_agents(reference)[other.agent].name
            what = f"the {other.quantity.upper()} of {label} on {title(other.game)}"
            return f"not a score: it is printed as {what} (L{other.line})"
    return None


def _beside(cell: PrintedCell) -> PrintedCell | None:
    """Return the normalized score printed in the same row for the same agent."""
    row = (c for c in printed_cells(cell.table) if c.line == cell.line and c.agent == cell.agent)
    return next((c for c in row if c.quantity in metrics.CRITERIA), None)


def _another_score(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Report a score that its own normalized score confirms and other tables contradict."""
    beside = _beside(cell)
    if beside is None or cell.value is None or not agrees(beside.text, _normalized(beside, cell.value, reference)):
        return None
    return f"another score than in other tables; the {beside.quantity.upper()} next to it, {beside.text}, belongs to it"


def _stale_score(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Report a score that its own normalized score contradicts."""
    beside = _beside(cell)
    if beside is None:
        return None
    return (
        f"another score than in other tables; the {beside.quantity.upper()} next to it, {beside.text}, "
        f"belongs to {expected:.10g}"
    )


def _alternative_score(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Try the aggregate with one game's score replaced by another printed one."""
    agent = paper_agents(reference)[cell.agent]
    for other in _all_cells():
        if other.agent != cell.agent or other.quantity != "score" or other.value is None or other.game is None:
            continue
        index = GAMES.index(other.game)
        if other.value == agent.scores[0, index]:
            continue
        scores = agent.scores.copy()
        scores[0, index] = other.value
        changed = aggregate(cell.quantity, type(agent)(agent.name, scores, agent.frames), load_reference(reference))
        if changed is not None and agrees(cell.text, changed):
            where = f"table {other.table} (L{other.line})"
            return f"needs {title(other.game)} = {other.text}, which is printed in {where} but not in most tables"
    return None


def _one_game_too_many(cell: PrintedCell, expected: float, reference: str) -> str | None:
    if not cell.quantity.startswith("mean"):
        return None
    count = int(paper_agents(reference)[cell.agent].reported.sum())
    if count < len(GAMES) and agrees(cell.text, expected * count / (count + 1)):
        return f"the sum over its {count} games was divided by {count + 1}"
    return None


def _follows_printed(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Try the efficiency of the aggregate as printed, if that is itself wrong."""
    of = cell.quantity.removeprefix("learning_efficiency_of_")
    frames = paper_agents(reference)[cell.agent].frames
    for other in printed_cells(cell.table):
        if other.agent == cell.agent and other.quantity == of and other.value is not None and frames:
            right = recompute(other, reference)
            wrong = isinstance(right, float) and not agrees(other.text, right)
            if wrong and agrees(cell.text, other.value / 100 / frames):
                return f"follows from the printed {quantity_name(of)} {other.text}, which is wrong itself"
    return None


def _other_quantity(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Try the same agent's efficiency by another criterion."""
    agent, table = paper_agents(reference)[cell.agent], load_reference(reference)
    for criterion in metrics.CRITERIA:
        for statistic in ("mean", "median"):
            quantity = f"learning_efficiency_of_{statistic}_{criterion}"
            value = aggregate(quantity, agent, table)
            if quantity != cell.quantity and value is not None and agrees(cell.text, value):
                return f"this is its {quantity_name(quantity)}"
    return None


def _printed_otherwise(cell: PrintedCell, expected: float, reference: str) -> str | None:
    """Report that the same quantity is printed correctly elsewhere."""
    right = [
        c for c in _all_cells()
        if c.agent == cell.agent and c.quantity == cell.quantity and c is not cell and agrees(c.text, expected)
    ]  # fmt: skip
    if not right:
        return None
    lines = ", ".join(f"L{c.line}" for c in right)
    implied = _implied_aggregate(cell, expected, reference)
    return f"printed as {right[0].text} elsewhere ({lines})" + (f"; {implied}" if implied else "")


def _implied_aggregate(cell: PrintedCell, expected: float, reference: str) -> str | None:
    frames = paper_agents(reference)[cell.agent].frames
    if not cell.quantity.startswith("learning_efficiency") or cell.value is None or not frames:
        return None
    of = cell.quantity.removeprefix("learning_efficiency_of_")
    return f"would need a {quantity_name(of)} of about {100 * cell.value * frames:.4g}%: probably an earlier version"


def _implied_sum(cell: PrintedCell, expected: float, reference: str) -> str | None:
    if not cell.quantity.startswith("mean") or cell.value is None:
        return None
    count = int(paper_agents(reference)[cell.agent].reported.sum())
    criterion = cell.quantity.removeprefix("mean_")
    column = [c.value for c in printed_cells(cell.table) if c.agent == cell.agent and c.quantity == criterion]
    numbers = [value for value in column if value is not None]
    average = f"its {len(numbers)} printed cells average to {np.mean(numbers):.2f}; " if numbers else ""
    return (
        f"{average}the printed mean needs {(cell.value - expected) * count:+.1f} points in the sum, "
        "which no other printed score gives: probably from earlier scores"
    )


def _normalized(cell: PrintedCell, raw: float, reference: str) -> float:
    """Return a raw score by the criterion of a cell, in percent."""
    scores = np.full((1, len(GAMES)), np.nan)
    index = GAMES.index(str(cell.game))
    scores[0, index] = raw
    return 100 * float(metrics.CRITERIA[cell.quantity](scores, load_reference(reference))[0, index])


@cache
def _all_cells() -> tuple[PrintedCell, ...]:
    return tuple(cell for table in table_names() for cell in printed_cells(table))
