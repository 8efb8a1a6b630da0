"""``gdi algorithms``: derive the taxonomy GDI-I^n / GDI-H^n, and compare it with the paper's."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.box import SIMPLE
from rich.table import Table

from gdi.cli.parsing import JSON_HELP, OneLineParser
from gdi.cli.printing import report_console
from gdi.presets import PRESETS, make_config
from gdi.theory.literature import DEVIATIONS, LITERATURE, PAPER_CLASS
from gdi.theory.live import classify_config, describe_config
from gdi.theory.taxonomy import classify

LEGEND = """\
settings (Λ): the exploration settings λ to choose from. parameters (θ_λ): the network parameters that act under λ.
start (P⁰): how λ is drawn before any return is known. controller (E): how returns change that, or identity.
class: GDI-I has the same parameters for every λ, and GDI-H does not; ^n counts the components of λ that vary;
w/o E means that no controller learns. paper: whether the paper gives the same class.
Systems above the line are not built here: their class follows from a description. Ours are classified as they run."""


@dataclass(frozen=True)
class Row:
    """One algorithm with its description, the derived class, and the paper's class (None if the paper has none)."""

    name: str
    index_set: str
    parameters: str
    prior: str
    operator_e: str
    derived: str
    paper: str | None
    built: bool = False  # derived from the live config of a preset, not from a description

    @property
    def agrees(self) -> bool:
        """Return whether the derived class is the paper's."""
        return self.derived == self.paper


def rows() -> list[Row]:
    """Return our presets from their live configs, and the systems that are not built from their descriptions."""
    others = [a for a in LITERATURE if a.name.lower() not in PRESETS]
    found = [Row(a.name, *a.describes, str(classify(a)), PAPER_CLASS.get(a.name)) for a in others]
    for name in PRESETS:
        config = make_config(name, scale="paper")
        paper = PAPER_CLASS.get(name) or PAPER_CLASS.get(name.upper())
        found.append(Row(name, *describe_config(config), str(classify_config(config)), paper, built=True))
    return found


def published() -> list[tuple[Row, str]]:
    """Return the algorithms that the paper describes differently from their authors, with the reason."""
    return [
        (
            Row(d.published.name, *d.published.describes, str(classify(d.published)), PAPER_CLASS[d.published.name]),
            d.reason,
        )
        for d in DEVIATIONS
    ]


def run(argv: list[str]) -> int:
    """Print the taxonomy; the exit code is 1 if it differs from the paper's."""
    parser = OneLineParser(
        prog="gdi algorithms",
        description="Derive the class of each algorithm, GDI-I^n or GDI-H^n, with or without a controller (E). "
        "The class follows from the index set (Λ), the parameters (Θ), the initial distribution (P⁰) and the "
        "controller. The exit code is 1 if a class differs from the paper's.",
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
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
    table = Table(title="The class of each algorithm in the paper's taxonomy", title_justify="left", title_style="bold")
    table.box, table.padding = SIMPLE, (0, 1, 0, 0)
    for heading in ("algorithm", "settings (Λ)", "parameters (θ_λ)", "start (P⁰)", "controller (E)", "class", "paper"):
        table.add_column(heading, no_wrap=heading in ("algorithm", "class"))
    for position, row in enumerate(table_rows):
        said = "-" if row.paper is None else "equal" if row.agrees else f"[red]{row.paper}[/red]"
        words = (row.name, row.index_set, row.parameters, row.prior, row.operator_e, row.derived, said)
        ends = not row.built and table_rows[position + 1].built
        table.add_row(*words, end_section=ends)
    console.print(table)
    console.print(LEGEND)
    console.print("\n[bold]As published by their authors, two of them belong to another class:[/bold]")
    for row, reason in deviations:
        console.print(f"{row.name}: derived {row.derived}, paper {row.paper}. {reason[:1].upper()}{reason[1:]}")
    return code
