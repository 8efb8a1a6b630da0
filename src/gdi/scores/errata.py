"""Compares printed numbers with recomputed ones, and lists disagreements with their causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from gdi.scores.causes import likely_cause
from gdi.scores.claims import baseline_shift_table, claims_table
from gdi.scores.games import title
from gdi.scores.paper import PrintedCell, paper_agents, printed_cells, quantity_name, recompute, table_names
from gdi.scores.rounding import agrees, format_like
from gdi.scores.tables import Column, Table, frames_text, render


@dataclass(frozen=True)
class Disagreement:
    """A printed number, the correct one, and the probable cause of the difference."""

    cell: PrintedCell
    expected: str
    cause: str


def check(cell: PrintedCell, reference: str = "paper") -> Disagreement | None:
    """Return the disagreement, or None if the printed cell is correct."""
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
        # Raw scores are copied without rounding, so they must be equal.
        if cell.value == expected:
            return None
        return Disagreement(cell, f"{expected:.10g}", likely_cause(cell, expected, reference))
    if agrees(cell.text, expected):
        return None
    return Disagreement(cell, format_like(expected, cell.text), likely_cause(cell, expected, reference))


@cache
def all_disagreements(reference: str = "paper") -> tuple[Disagreement, ...]:
    """Return every disagreement in the paper's 15 tables, in reading order."""
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
    places: tuple[PrintedCell, ...]

    @property
    def where(self) -> str:
        by_table: dict[str, list[int]] = {}
        for cell in self.places:
            by_table.setdefault(cell.table, []).append(cell.line)
        return "; ".join(f"{table} {', '.join(f'L{line}' for line in lines)}" for table, lines in by_table.items())


def group(disagreements: Iterable[Disagreement]) -> list[Erratum]:
    """Merge equal disagreements in several tables into one erratum."""
    groups: dict[tuple[str, str, str, str], list[PrintedCell]] = {}
    for item in disagreements:
        cell = item.cell
        label = paper_agents("paper")[cell.agent].name
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
    """Return the disagreements of some tables: aggregates, normalized scores and raw scores."""
    found = [item for item in all_disagreements(reference) if item.cell.table in names]
    kinds = (
        ("aggregates", "Aggregates", [i for i in found if i.cell.game is None]),
        ("normalized", "Normalized scores", [i for i in found if i.cell.game and i.cell.quantity != "score"]),
        ("scores", "Raw scores", [i for i in found if i.cell.quantity == "score"]),
    )
    tables = []
    for name, heading, items in kinds:
        cells = [c for table in names for c in printed_cells(table) if _kind(c) == name]
        note = f"{len(items)} of {len(cells)} printed {heading.lower()} disagree."
        tables.append(_table(name, heading, group(items), note))
    return tables


def _kind(cell: PrintedCell) -> str:
    if cell.game is None:
        return "aggregates"
    return "scores" if cell.quantity == "score" else "normalized"


def errata_markdown(reference: str = "paper") -> str:
    """Return the text of docs/errata.md.

    It lists every disagreement, the baselines that differ from the standard list, and claims in the prose.
    """
    names = table_names()
    total, wrong = count_cells(names), len(all_disagreements(reference))
    intro = f"""# Errata of the paper's score tables

<!-- Generated by `gdi scores paper --check --format markdown --out docs/errata.md`; a test keeps it current. -->

The paper prints {total:,} cells in its 15 score tables. Recomputed from its own raw scores, {total - wrong:,} of them
agree to the last printed digit and {wrong} do not.

- No ranking of the 13 agents by a mean or a median changes.
- The choice of the baseline list changes the headline number (see the last section but one).

The tables below list each of the {wrong} cells with its likely cause. The program found a cause by computing what would
have been printed if the cause were true. Where the cause is "earlier" or "another" scores, nothing in the paper gives
the printed number, so the cause is a guess.

`L2196` is a line of the paper's LaTeX source. Table names are those of `gdi scores paper --table NAME`. Aggregates are
recomputed with the reference `{reference}`, the baselines that the printed normalized scores were computed with.
"""
    tables = [*check_tables(names, reference), baseline_shift_table(), claims_table()]
    return intro + "\n" + render(tables, "markdown")
