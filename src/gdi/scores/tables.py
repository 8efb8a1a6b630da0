"""A table as data, and its six formats: terminal, CSV, JSON, Markdown, LaTeX and HTML."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gdi.errors import UserError, did_you_mean

FORMATS = ("table", "csv", "json", "markdown", "latex", "html")


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    low: float
    high: float


Cell = str | int | float | bool | Estimate | None


@dataclass(frozen=True)
class Column:
    """A column: `name` with the unit is for programs, `label` for people, and `spec` formats numbers."""

    name: str
    label: str
    spec: str = ""

    @property
    def numeric(self) -> bool:
        return bool(self.spec)

    @property
    def heading(self) -> str:
        """Return the label on one line, because only a terminal has headings of two lines."""
        return self.label.replace("\n", " ")

    def text(self, cell: Cell) -> str:
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return "" if not self.numeric else "N/A"
        if isinstance(cell, Estimate):
            return f"{self.text(cell.value)} [{self.text(cell.low)}, {self.text(cell.high)}]"
        if isinstance(cell, str):
            return cell
        if isinstance(cell, bool):
            return "yes" if cell else ""
        if self.spec == "frames":
            return frames_text(float(cell))
        if self.spec == "raw":
            return f"{cell:.10g}"
        if self.spec == "quantity":  # the column mixes percentages and counts
            return f"{cell:d}" if isinstance(cell, int) else f"{cell:.2f}"
        if self.spec.endswith("E"):
            return re.sub(r"E([+-])0*(\d{2})", r"E\1\2", f"{cell:{self.spec}}")
        return f"{cell:{self.spec}}"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; `marked` rows, such as the user's own agent, are highlighted."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[int] = frozenset()
    ruled: frozenset[int] = frozenset()  # a rule is drawn above these rows
    notes: tuple[str, ...] = field(default=())

    def records(self) -> list[dict[str, str | int | float | bool | None]]:
        """Return one dictionary per row; an estimate becomes ``x``, ``x_low`` and ``x_high``."""
        with_interval = {
            index for index in range(len(self.columns)) if any(isinstance(row[index], Estimate) for row in self.rows)
        }
        out: list[dict[str, str | int | float | bool | None]] = []
        for row in self.rows:
            record: dict[str, str | int | float | bool | None] = {}
            for index, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
                if isinstance(cell, Estimate):
                    record |= {
                        column.name: _plain(cell.value),
                        f"{column.name}_low": _plain(cell.low),
                        f"{column.name}_high": _plain(cell.high),
                    }
                    continue
                record[column.name] = _plain(cell)
                if index in with_interval:
                    record |= {f"{column.name}_low": None, f"{column.name}_high": None}
            out.append(record)
        return out


def frames_text(frames: float) -> str:
    """Format a number of frames: 2e8 -> ``200M``, 3.5e10 -> ``35B``."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if frames >= size:
            return f"{frames / size:.6g}{letter}"
    return f"{frames:.6g}"


# Far above any published run.
LARGEST_FRAMES = 1e15


def parse_frames(text: str) -> float:
    """Parse ``200e6``, ``200M`` or ``10B`` as a number of frames."""
    match = re.fullmatch(r"([0-9.]+(?:[eE][+-]?\d+)?)\s*([kKmMbBgG]?)", text.strip())
    try:
        value = float(match[1]) if match else math.nan
    except ValueError:
        value = math.nan
    if match:
        value *= {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}[match[2].lower()]
    if not 1 <= value <= LARGEST_FRAMES:
        raise UserError(
            f"--frames {text[:60]!r} is not a positive number of frames, from 1 to {LARGEST_FRAMES:.0e}: write 200e6, "
            "200M or 10B."
        )
    return value


def check_format(name: str) -> str:
    if name not in FORMATS:
        raise UserError(f"unknown format {name!r}.{did_you_mean(name, FORMATS)} Choose from {', '.join(FORMATS)}.")
    return name


def render(tables: Sequence[Table], style: str, title: str = "Atari scores") -> str:
    """Render the tables in one of `FORMATS`, as text that ends with a newline."""
    check_format(style)
    if style == "table":
        return _terminal(tables)
    if style == "csv":
        return _csv(tables)
    if style == "json":
        return _json(tables)
    if style == "markdown":
        return "\n".join(_markdown(table) for table in tables)
    if style == "latex":
        return "\n".join(_latex(table) for table in tables)
    return _html(tables, title)


def _plain(cell: Cell) -> str | int | float | bool | None:
    if isinstance(cell, Estimate):
        raise TypeError("an estimate has three plain values")
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _terminal(tables: Sequence[Table]) -> str:
    from rich import box
    from rich.console import Console, Group
    from rich.measure import Measurement
    from rich.table import Table as RichTable
    from rich.text import Text

    parts: list[RichTable | Text] = []
    for table in tables:
        drawn = RichTable(
            title=Text(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1)
        )
        for column in table.columns:
            drawn.add_column(Text(column.label), justify="right" if column.numeric else "left", no_wrap=True)
        for number, row in enumerate(table.rows):
            if number in table.ruled:
                drawn.add_section()
            # Game and agent names are plain text, which must not be read as markup.
            cells = [Text(column.text(cell)) for column, cell in zip(table.columns, row, strict=True)]
            drawn.add_row(*cells, style="bold green" if number in table.marked else None)
        parts.append(drawn)
        parts += [Text(f"  {note}") for note in table.notes]
        parts.append(Text(""))
    stream = io.StringIO()
    console = Console()
    # A table wider than the terminal is printed in full, so that no number is cut off.
    need = max(
        (Measurement.get(Console(width=10_000), console.options.update(width=10_000), part).maximum for part in parts),
        default=80,
    )
    painted = Console(
        file=stream,
        width=max(console.width, need),
        force_terminal=console.is_terminal,
        no_color=console.no_color,
        color_system="auto" if console.is_terminal else None,
    )
    painted.print(Group(*parts))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _csv(tables: Sequence[Table]) -> str:
    """Render one table as itself, and several as one tidy table of cells, which is always valid CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if len(tables) == 1:
        records = tables[0].records()
        writer.writerow(records[0].keys() if records else [column.name for column in tables[0].columns])
        writer.writerows([_csv_cell(cell) for cell in record.values()] for record in records)
        return stream.getvalue()
    writer.writerow(("table", "row", "column", "value"))
    for table in tables:
        for record in table.records():
            head, *rest = record.items()
            writer.writerows((table.name, _csv_cell(head[1]), name, _csv_cell(cell)) for name, cell in rest)
    return stream.getvalue()


def _csv_cell(cell: str | int | float | bool | None) -> str | int | float:
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else cell


def _json(tables: Sequence[Table]) -> str:
    content = {table.name: table.records() for table in tables}
    notes = [note for table in tables for note in table.notes]
    return json.dumps({**content, "notes": notes}, indent=1, allow_nan=False) + "\n"


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [f"## {table.title}", "", line([column.heading for column in table.columns])]
    lines.append("|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|")
    for number, row in enumerate(table.rows):
        cells = [column.text(cell) for column, cell in zip(table.columns, row, strict=True)]
        lines.append(line([f"**{cell}**" if number in table.marked and cell else cell for cell in cells]))
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "^": r"\^{}", "~": r"\~{}",
    "{": r"\{", "}": r"\}", "±": r"$\pm$", ">": r"$>$", "<": r"$<$", "≥": r"$\ge$", "→": r"$\to$", "—": "---",
}  # fmt: skip


def _latex(table: Table) -> str:
    def escape(text: str) -> str:
        return "".join(_LATEX.get(letter, letter) for letter in text)

    shape = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [r"\begin{table}", r"\centering", r"\small", rf"\caption{{{escape(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    lines.append(" & ".join(escape(column.heading) for column in table.columns) + r" \\")
    lines.append(r"\midrule")
    for number, row in enumerate(table.rows):
        if number in table.ruled:
            lines.append(r"\midrule")
        cells = [escape(column.text(cell)) for column, cell in zip(table.columns, row, strict=True)]
        if number in table.marked:
            cells = [rf"\textbf{{{cell}}}" for cell in cells]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    lines += [f"% {note}" for note in table.notes]
    return "\n".join(lines) + "\n"


STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 100rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; font-size: 1.15rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap; }
th.text, td.text { text-align: left; }
th { border-bottom: 2px solid #888; cursor: pointer; user-select: none; }
th[aria-sort=ascending]::after { content: " ▲"; }
th[aria-sort=descending]::after { content: " ▼"; }
tbody tr:hover { background: #8882; }
tr.marked { font-weight: 700; background: #56b4e933; }
tr.ruled td { border-top: 1px solid #888; }
p.note { max-width: 60rem; color: #666; margin: .3rem 0; }
"""

SCRIPT = """
for (const head of document.querySelectorAll("th")) head.addEventListener("click", () => {
  const table = head.closest("table"), column = [...head.parentNode.children].indexOf(head);
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = row => row.children[column].dataset.value ?? row.children[column].textContent;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const x = key(a), y = key(b), nx = parseFloat(x), ny = parseFloat(y);
    if (Number.isNaN(nx) || Number.isNaN(ny)) return Number.isNaN(nx) - Number.isNaN(ny) || x.localeCompare(y);
    return nx - ny;
  });
  if (down) rows.reverse();
  table.tBodies[0].append(...rows);
});
"""


def html_table(table: Table) -> str:
    """Render one table as an HTML section; a click on a heading sorts it (with `SCRIPT` in the page)."""

    def cell(tag: str, column: Column, text: str, value: Cell = None) -> str:
        number = value.value if isinstance(value, Estimate) else value
        data = f' data-value="{number!r}"' if isinstance(number, (int, float)) and column.numeric else ""
        return f"<{tag}{'' if column.numeric else ' class=text'}{data}>{html.escape(text)}</{tag}>"

    heads = "".join(cell("th", column, column.heading) for column in table.columns)
    body = []
    for number, row in enumerate(table.rows):
        names = " ".join(name for name, rows in (("marked", table.marked), ("ruled", table.ruled)) if number in rows)
        cells = "".join(
            cell("td", column, column.text(value), value) for column, value in zip(table.columns, row, strict=True)
        )
        body.append(f'<tr class="{names}">{cells}</tr>' if names else f"<tr>{cells}</tr>")
    notes = "".join(f'<p class="note">{html.escape(note)}</p>\n' for note in table.notes)
    rows = "\n".join(body)
    return (
        f'<section id="{html.escape(table.name)}"><h2>{html.escape(table.title)}</h2>\n<div class="scroll"><table>'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{notes}</section>"
    )


def _html(tables: Sequence[Table], title: str) -> str:
    sections = "\n".join(html_table(table) for table in tables)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{html.escape(title)}</h1>\n{sections}\n<script>{SCRIPT}</script></body></html>\n"
    )
