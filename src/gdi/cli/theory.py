"""``gdi theory``: test the paper's theorems on random instances, and search for counterexamples."""

from __future__ import annotations

import json
import sys
import time

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gdi.cli.parsing import JSON_HELP, OneLineParser, path_argument, whole_number
from gdi.cli.printing import report_console
from gdi.errors import UserError
from gdi.theory.measures import TOLERANCE
from gdi.theory.report import Report, execute, expected, num_progress_steps, outcome
from gdi.theory.search import Counterexample


def run(argv: list[str]) -> int:
    """Test the theorems, and print the report; the exit code is 1 if it differs from docs/theory.md."""
    parser = OneLineParser(
        prog="gdi theory",
        description="Test every lemma and theorem on random instances. Search for counterexamples without each "
        "assumption. Run GDI with and without the controller (E) on exact gradients. The exit code is 1 if a result "
        "differs from docs/theory.md.",
    )
    parser.add_argument(
        "--trials", type=whole_number, default=10_000, metavar="N", help="instances per claim (default: 10000)"
    )
    parser.add_argument("--seed", type=whole_number, default=0, metavar="S", help="seed for the instances (default: 0)")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    parser.add_argument(
        "--figures",
        type=path_argument,
        metavar="DIR",
        help="also draw the figures to this folder, which needs matplotlib",
    )
    args = parser.parse_args(argv)
    if args.trials < 1:
        raise UserError(f"--trials must be 1 or more, not {args.trials}.")
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")
    if args.figures is not None:
        # Check this before the computation, which takes minutes.
        from gdi.theory.figures import check_can_draw

        check_can_draw(args.figures)

    began = time.perf_counter()
    report = _execute(args.trials, args.seed)
    if args.json:
        print(json.dumps(report.as_dict()))
    else:
        _print(report, time.perf_counter() - began)
    if args.figures is not None:
        from gdi.theory.figures import draw_all

        for path in draw_all(args.figures, report.learning):
            print(f"gdi theory: wrote {path}", file=sys.stderr)
    return 0 if report.ok else 1


def _execute(trials: int, seed: int) -> Report:
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=num_progress_steps())
        started = False

        def progress(name: str) -> None:
            nonlocal started
            bar.update(task, description=name, advance=1 if started else 0)
            started = True

        return execute(trials, seed, progress)


def _print(report: Report, seconds: float) -> None:
    console = report_console()
    console.print(_claims_table(report))
    console.print(_examples_table("An assumption dropped: the smallest counterexample found", report.dropped))
    console.print(_examples_table("The text as printed: the smallest counterexample found", report.slips))
    console.print("[bold]The counterexamples[/bold]")
    for key, found in (*report.dropped, *report.slips):
        if found is not None:
            console.print(f"\n  [bold]{key}[/bold]: {escape(found.claim)}", soft_wrap=True)
            for name, value in found.example.items():
                if value is not None:
                    console.print(f"    {escape(name)}: {escape(str(value))}", soft_wrap=True)
    console.print()
    console.print(_learning_table(report))
    verdict = "all as docs/theory.md says" if report.ok else "[red]not as docs/theory.md says[/red]"
    console.print(
        f"{report.trials} instances per claim, seed {report.seed}, tolerance {TOLERANCE:g}, {seconds:.1f} s: {verdict}."
    )


def _table(title: str, *headings: str) -> Table:
    """Return an empty table. A heading that starts with > is a column of numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in headings:
        number, name = heading.startswith(">"), heading.removeprefix(">")
        table.add_column(name, justify="right" if number else "left", no_wrap=number or name in ("label", "name"))
    table.caption_justify = "left"
    return table


def _claims_table(report: Report) -> Table:
    table = _table("Where the assumptions hold", "claim", "label", ">instances", ">strict", ">worst margin", "verdict")
    for claim, verdict in report.claims:
        strict = "=" if verdict.strict is None else f"{verdict.strict:.0%}"
        said = "holds" if verdict.holds else "[red]VIOLATED[/red]"
        row = (escape(claim.statement), claim.label, f"{verdict.instances:,}", strict, f"{verdict.worst:.1e}", said)
        table.add_row(*row)
    table.caption = "strict: share of instances with a margin above 1e-6; =: an identity, its margin is minus the error"
    return table


def _examples_table(title: str, entries: tuple[tuple[str, Counterexample | None], ...]) -> Table:
    table = _table(title, "name", "needed", ">left", ">right", ">margin", ">rate")
    for key, found in entries:
        if found is None:
            table.add_row(key, "[red]no counterexample found[/red]", "", "", "", "")
        else:
            numbers = (f"{found.left:.4f}", f"{found.right:.4f}", f"{found.margin:.4f}", f"{found.rate:.1%}")
            table.add_row(key, escape(found.dropped), *numbers)
    table.caption = "left >= right was to be shown; rate: how often it fails on random instances"
    return table


def _learning_table(report: Report) -> Table:
    title = "Learning from exact gradients: GDI with E against GDI without E"
    table = _table(title, "setting", "T", ">asp:3", ">target", ">best index", ">final", "E")
    for run in report.learning:
        target, best = run.advantage()
        said = outcome(run)
        table.add_row(
            run.setting.name,
            "natural" if run.setting.natural else "gradient",
            f"{run.with_e.assumption_3.mean():.0%}",
            f"{target:+.3f}",
            f"{best:+.3f}",
            f"{run.with_e.target[-1]:.2f} / {run.without_e.target[-1]:.2f}",
            said if said == expected(run.setting) else f"[red]{said}, expected {expected(run.setting)}[/red]",
        )
    table.caption = (
        "asp:3: share of iterations where it held; target, best index: mean advantage with E; final: with / without E"
    )
    return table
