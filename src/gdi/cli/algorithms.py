"""``gdi algorithms``: the taxonomy GDI-I^n / GDI-H^n, derived, beside the paper's."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.box import SIMPLE
from rich.table import Table

from gdi.cli.parsing import OneLineParser
from gdi.cli.printing import report_console
from gdi.presets import PRESETS, make_config
from gdi.theory.literature import DEVIATIONS, LITERATURE, PAPER_CLASS
from gdi.theory.live import classify_config, describe_config
from gdi.theory.taxonomy import classify


@dataclass(frozen=True)
class Row:
    """One algorithm: its description, the class derived from it, and the paper's (None where the paper is silent)."""

    name: str
    index_set: str
    parameters: str
    prior: str
    operator_e: str
    derived: str
    paper: str | None

    @property
    def agrees(self) -> bool:
        return self.derived == self.paper


def rows() -> list[Row]:
    """The literature as the paper describes it, then our presets from their live configs."""
    found = [Row(a.name, *a.describes, str(classify(a)), PAPER_CLASS.get(a.name)) for a in LITERATURE]
    for name in PRESETS:
        config = make_config(name, scale="paper")
        found.append(Row(name, *describe_config(config), str(classify_config(config)), PAPER_CLASS.get(name)))
    return found


def published() -> list[tuple[Row, str]]:
    """The algorithms that the paper describes otherwise than their authors, with the reason."""
    return [
        (
            Row(d.published.name, *d.published.describes, str(classify(d.published)), PAPER_CLASS[d.published.name]),
            d.reason,
        )
        for d in DEVIATIONS
    ]


def run(argv: list[str]) -> int:
    parser = OneLineParser(
        prog="gdi algorithms",
        description="Derive the class GDI-I^n or GDI-H^n, with or without E, of each algorithm from (Λ, Θ, P⁰, E). "
        "Exit code 1 if any differs from the paper's.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    args = parser.parse_args(argv)
    table_rows, deviations = rows(), published()
    code = 0 if all(row.agrees for row in table_rows if row.paper is not None) else 1
    if args.json:
        print(
            json.dumps(
                {
                    "algorithms": [{**asdict(row), "agrees": row.agrees} for row in table_rows],
                    "as_published": [{**asdict(row), "reason": reason} for row, reason in deviations],
                }
            )
        )
        return code
    console = report_console()
    table = Table(title="The taxonomy, derived from (Λ, Θ, P⁰, E)", title_justify="left", title_style="bold")
    table.box, table.padding = SIMPLE, (0, 1, 0, 0)
    for heading in ("algorithm", "Λ", "θ_λ", "P⁰", "E", "derived", "paper"):
        table.add_column(heading, no_wrap=heading in ("algorithm", "P⁰", "derived"))
    for position, row in enumerate(table_rows):
        said = "-" if row.paper is None else "equal" if row.agrees else f"[red]{row.paper}[/red]"
        words = (row.name, row.index_set, row.parameters, row.prior, row.operator_e, row.derived, said)
        table.add_row(*words, end_section=position == len(LITERATURE) - 1)
    console.print(table)
    console.print("[bold]As published, two of them are something else:[/bold]")
    for row, reason in deviations:
        console.print(f"  {row.name}: derived {row.derived}, paper {row.paper}: {reason}", soft_wrap=True)
    return code
