"""The tables of a report as CSV."""

from __future__ import annotations

from gdi.report.document import Document, TableBlock
from gdi.scores.tables import Table, render


def tables_of(document: Document) -> list[Table]:
    """Return all tables of a report, in its order."""
    return [block.table for section in document.sections for block in section.blocks if isinstance(block, TableBlock)]


def tables_in_csv(document: Document) -> str:
    """Return every cell of every table as one row: table, row, column, value."""
    return render(tables_of(document), "csv")
