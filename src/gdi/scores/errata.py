"""Compares every number the paper prints with the recomputed one, and lists the disagreements with their causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from gdi.scores.causes import likely_cause
from gdi.scores.claims import claims_table, shift_table
from gdi.scores.digits import agrees, written
from gdi.scores.games import title
from gdi.scores.paper import Printed, contestants, printed_cells, quantity_name, recompute, table_names
from gdi.scores.tables import Column, Table, frames_text, render


@dataclass(frozen=True)
class Disagreement:
    """A printed number, what it should be, and why it probably is not."""

    cell: Printed
    expected: str
    cause: str


def check(cell: Printed, reference: str = "paper") -> Disagreement | None:
    """None where the printed cell is right."""
    expected = recompute(cell, reference)
    if isinstance(expected, str):
        plain = cell.text.replace("$", "").replace(r"\mathcal{E}", "E")
        return None if plain == expected else Disagreement(cell, expected, "another category than in the taxonomy")
    if cell.quantity == "scale" and expected is not None:
        right = cell.text == frames_text(expected)
        return (
            None
            if right
            else Disagreement(cell, frames_text(expected), "another number of frames than in the full table")
        )
    if expected is None:
        return None if cell.text == "N/A" else Disagreement(cell, "N/A", "there is no such score")
    if cell.text == "N/A":
        return Disagreement(cell, f"{expected:.6g}", "reported, but printed as not available")
    if cell.quantity == "score":
        # Raw scores are copied, not rounded: they must be equal.
        if cell.value == expected:
            return None
        return Disagreement(cell, f"{expected:.10g}", likely_cause(cell, expected, reference))
    if agrees(cell.text, expected):
        return None
    return Disagreement(cell, written(expected, cell.text), likely_cause(cell, expected, reference))


@cache
def all_disagreements(reference: str = "paper") -> tuple[Disagreement, ...]:
    """Every disagreement in the paper's 15 tables, in reading order."""
    found = (check(cell, reference) for table in table_names() for cell in printed_cells(table))
    return tuple(item for item in found if item is not None)


def count_cells(tables: Iterable[str]) -> int:
    return sum(len(printed_cells(table)) for table in tables)


@dataclass(frozen=True)
class Erratum:
    """The same disagreement in one or more places."""

    subject: str
    printed: str
    expected: str
    cause: str
    places: tuple[Printed, ...]

    @property
    def where(self) -> str:
        by_table: dict[str, list[int]] = {}
        for cell in self.places:
            by_table.setdefault(cell.table, []).append(cell.line)
        return "; ".join(f"{table} {', '.join(f'L{line}' for line in lines)}" for table, lines in by_table.items())


def group(disagreements: Iterable[Disagreement]) -> list[Erratum]:
    """Equal disagreements in several tables as one erratum."""
    groups: dict[tuple[str, str, str, str], list[Printed]] = {}
    for item in disagreements:
        cell = item.cell
        label = contestants("paper")[cell.agent].name
        what = "score" if cell.quantity == "score" else quantity_name(cell.quantity)
        subject = f"{label}, {title(cell.game)}: {what}" if cell.game else f"{label}: {what}"
        groups.setdefault((subject, cell.text, item.expected, item.cause), []).append(cell)
    return [Erratum(*key, places=tuple(cells)) for key, cells in groups.items()]


_COLUMNS = (
    Column("what", "what"),
    Column("printed", "printed", "s"),
    Column("recomputed", "should be", "s"),
    Column("where", "where"),
    Column("cause", "likely cause"),
)


def _table(name: str, heading: str, errata: Sequence[Erratum], note: str) -> Table:
    rows = tuple((e.subject, e.printed, e.expected, e.where, e.cause) for e in errata)
    return Table(name, heading, _COLUMNS, rows, notes=(note,))


def check_tables(names: Sequence[str], reference: str = "paper") -> list[Table]:
    """The disagreements of some of the paper's tables: aggregates, normalised scores and raw scores."""
    found = [item for item in all_disagreements(reference) if item.cell.table in names]
    kinds = (
        ("aggregates", "Aggregates", [i for i in found if i.cell.game is None]),
        ("normalised", "Normalised scores", [i for i in found if i.cell.game and i.cell.quantity != "score"]),
        ("scores", "Raw scores", [i for i in found if i.cell.quantity == "score"]),
    )
    tables = []
    for name, heading, items in kinds:
        cells = [c for table in names for c in printed_cells(table) if _kind(c) == name]
        note = f"{len(items)} of {len(cells)} printed {heading.lower()} disagree."
        tables.append(_table(name, heading, group(items), note))
    return tables


def _kind(cell: Printed) -> str:
    if cell.game is None:
        return "aggregates"
    return "scores" if cell.quantity == "score" else "normalised"


def errata_markdown(reference: str = "paper") -> str:
    """docs/errata.md: every disagreement, the baselines that differ from the standard list, and claims in the prose."""
    names = table_names()
    total, wrong = count_cells(names), len(all_disagreements(reference))
    intro = f"""# Errata of the paper's score tables

<!-- Generated by `gdi scores paper --check --format markdown --out docs/errata.md`; a test keeps it current. -->

The paper prints {total:,} cells in its 15 score tables. Recomputed from its own raw scores, {total - wrong:,} of them
come out to the last printed digit and {wrong} do not. Each of those is below with its likely cause, which the program
found by computing what would have been printed if the cause were true. Where the cause is "earlier" or "another"
scores, nothing in the paper gives the printed number, and that is a guess. `L2196` is a line of the paper's LaTeX
source; table names are those of `gdi scores paper --table NAME`. Aggregates are recomputed with the reference
`{reference}`, the baselines that the printed normalised scores were really computed with.

No ranking of the 13 agents by a mean or a median changes. The choice of the baseline list does change the headline
number (last-but-one section).
"""
    tables = [*check_tables(names, reference), shift_table(), claims_table()]
    return intro + "\n" + render(tables, "markdown")
