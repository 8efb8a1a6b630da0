"""The report as data: sections of texts, facts, figures and tables, and their JSON, which the page's script draws.

Names of runs and environments come from files of unknown origin. Everything here is therefore text: the script inserts
it as text, and ``plotly_text`` protects the strings that Plotly would read as markup.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gdi.scores.tables import Estimate, Table
from gdi.types import Array

# Longer lists of numbers are stored once, however many views draw them.
SHARED_LENGTH = 8
SIGNIFICANT_DIGITS = 5


@dataclass(frozen=True)
class Text:
    """A paragraph, a note in small print, a sentence that sums up, or a line of code."""

    text: str
    style: Literal["plain", "note", "summary", "code", "warning"] = "plain"


@dataclass(frozen=True)
class Facts:
    """Pairs of a label and its value."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Spark:
    """A small curve in a table, with its healthy range."""

    values: tuple[float, ...]
    low: float
    high: float


@dataclass(frozen=True)
class TableBlock:
    """A table; ``sparks`` has one small curve per row, if any."""

    table: Table
    sparks: tuple[Spark, ...] = ()


@dataclass(frozen=True)
class Menu:
    """A choice between views of a figure, as a list or as tabs; ``options`` maps keys to labels."""

    label: str
    options: Mapping[str, str]
    tabs: bool = False


@dataclass(frozen=True)
class View:
    """One picture, in Plotly's terms. The script adds the colors of the page."""

    traces: tuple[Mapping[str, Any], ...]
    layout: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure with menus; ``views`` has one picture per combination of their keys."""

    name: str
    caption: str
    views: Mapping[tuple[str, ...], View]
    menus: tuple[Menu, ...] = ()
    height: int = 380  # pixels
    frames: tuple[str, ...] = ()  # data: URLs of pictures; the first custom datum of a point is the number of its own


@dataclass(frozen=True)
class Media:
    """An embedded picture or video."""

    kind: Literal["image", "video"]
    source: str  # a data: URL
    caption: str


Block = Text | Facts | TableBlock | Figure | Media


@dataclass(frozen=True)
class Section:
    """A titled part of the report."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """The whole report."""

    title: str
    sections: tuple[Section, ...]


def plotly_text(text: str) -> str:
    """Return a text that Plotly shows as it is, because Plotly reads a small part of HTML."""
    return html.escape(text, quote=False)


def numbers(values: Sequence[float] | Array, digits: int = SIGNIFICANT_DIGITS) -> list[float | None]:
    """Return numbers for JSON, rounded, with None for what is missing."""
    return [_number(float(value), digits) for value in values]


def grid(rows: Array, digits: int = 3) -> list[list[float | None]]:
    """Return a matrix of numbers for JSON."""
    return [numbers(row, digits) for row in rows]


def _number(value: float, digits: int) -> float | None:
    if not math.isfinite(value):
        return None
    if value.is_integer() and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.{digits}g}")


def document_json(document: Document) -> str:
    """Return the document as JSON, which cannot end the script element that holds it."""
    shared: dict[str, int] = {}
    tree = {
        "title": document.title,
        "sections": [
            {"name": section.name, "title": section.title, "blocks": [_block(b, shared) for b in section.blocks]}
            for section in document.sections
        ],
    }
    arrays = [json.loads(text) for text in shared]
    text = json.dumps({**tree, "arrays": arrays}, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _block(block: Block, shared: dict[str, int]) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"kind": "text", "text": block.text, "style": block.style}
    if isinstance(block, Facts):
        return {"kind": "facts", "items": [list(item) for item in block.items]}
    if isinstance(block, TableBlock):
        return _table(block)
    if isinstance(block, Media):
        return {"kind": block.kind, "source": block.source, "caption": block.caption}
    return {
        "kind": "figure",
        "name": block.name,
        "caption": block.caption,
        "height": block.height,
        "frames": list(block.frames),
        "menus": [{"label": m.label, "tabs": m.tabs, "options": list(m.options.items())} for m in block.menus],
        "views": {
            "/".join(key): {
                "data": [_shared(trace, shared) for trace in view.traces],
                "layout": _shared(view.layout, shared),
            }
            for key, view in block.views.items()
        },
    }


def _shared(value: Any, shared: dict[str, int]) -> Any:
    """Replace long lists of numbers by ``{"array": number}``, so that equal ones are stored once."""
    if isinstance(value, Mapping):
        return {name: _shared(item, shared) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        value = numbers(value) if value.ndim == 1 else grid(value)
    if isinstance(value, (list, tuple)) and len(value) >= SHARED_LENGTH:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        return {"array": shared.setdefault(text, len(shared))}
    return value


def _table(block: TableBlock) -> dict[str, Any]:
    table = block.table
    return {
        "kind": "table",
        "name": table.name,
        "caption": table.title,
        "columns": [{"label": column.heading, "numeric": column.numeric} for column in table.columns],
        "rows": [
            [_cell(column.text(cell), cell) for column, cell in zip(table.columns, row, strict=True)]
            for row in table.rows
        ],
        "marked": sorted(table.marked),
        "notes": list(table.notes),
        "sparks": [
            {"values": numbers(spark.values), "low": numbers([spark.low])[0], "high": numbers([spark.high])[0]}
            for spark in block.sparks
        ],
    }


def _cell(text: str, cell: object) -> Any:
    """Return the text of a cell, with the number to sort by if it is one."""
    value = cell.value if isinstance(cell, Estimate) else cell
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return [text, value]
    return text
