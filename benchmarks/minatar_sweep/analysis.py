"""Tables and figures made only from the CSV files; no run folder is needed.

    python -m benchmarks.minatar_sweep.analysis [--results docs/results/minatar] [--out docs/results]

writes RESULTS/tables.md, and OUT/minatar-curves.png, -iqm.png, -lambda.png and -health.png. It reports missing runs,
and uses those that exist.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.minatar_sweep import ablation, fairness, preferences, tables
from benchmarks.minatar_sweep.agents import AGENTS
from benchmarks.minatar_sweep.records import EVALUATION_COLUMNS, LAMBDA_COLUMNS, Row, files_of, read_rows
from benchmarks.minatar_sweep.stats import make_runs
from gdi.cli.parsing import OneLineParser
from gdi.errors import UserError
from gdi.scores.runs import Run

PROG = "python -m benchmarks.minatar_sweep.analysis"
RESULTS, OUT = Path("docs/results/minatar"), Path("docs/results")


def read_results(results: Path) -> tuple[list[Run], list[Row]]:
    """Return all runs, and all rows of λ and health."""
    rows, lambdas = [], []
    for agent in AGENTS:
        evaluations, chosen, _ = files_of(results, agent)
        rows += read_rows(evaluations, EVALUATION_COLUMNS)
        lambdas += read_rows(chosen, LAMBDA_COLUMNS)
    if not rows:
        raise UserError(
            f"{results} has no results yet: run python -m benchmarks.minatar_sweep.export first, or pass --results."
        )
    return make_runs(rows), lambdas


def page(runs: list[Run], lambdas: list[Row]) -> str:
    """Return all tables as one page."""
    agents, games = len(tables.agents_in(runs)), len(tables.games_in(runs))
    parts = [
        f"<!-- Written by `{PROG}` from the CSV files beside it: do not edit. -->",
        "# MinAtar: tables",
        f"{len(runs)} runs of {agents} agents on {games} games, {tables.steps_text(runs)} steps each.",
        tables.scores(runs),
        tables.aggregates(runs),
        fairness.choices(runs),
        fairness.trimming(runs),
        tables.against_peers(runs),
        ablation.settings(runs),
        ablation.score_table(runs),
        ablation.claims(runs),
        tables.efficiency(runs),
        tables.health(lambdas),
        preferences.epsilon(lambdas),
        tables.coverage(runs),
    ]
    return "\n\n".join(parts) + "\n"


def analyze(results: Path, out: Path) -> list[Path]:
    """Write the page of tables and the figures; return the written paths."""
    from benchmarks.minatar_sweep import figures

    runs, lambdas = read_results(results)
    out.mkdir(parents=True, exist_ok=True)
    written = [results / "tables.md"]
    written[0].write_text(page(runs, lambdas), encoding="utf-8")
    drawn = {
        "curves": figures.curves_figure(runs),
        "iqm": figures.iqm_figure(runs),
        "lambda": figures.lambda_figure(lambdas),
        "health": figures.health_figure(lambdas),
    }
    for name, figure in drawn.items():
        if figure is not None:
            written.append(out / f"minatar-{name}.png")
            figure.savefig(written[-1])
    return written


def main(argv: list[str] | None = None) -> int:
    parser = OneLineParser(prog=PROG, description="Tables and figures of the MinAtar benchmark from its CSV files.")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the CSV files (default: {RESULTS})")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder for the figures (default: {OUT})")
    try:
        args = parser.parse_args(argv)
        for path in analyze(args.results, args.out):
            print(path)
    except UserError as error:
        print(f"{PROG}: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
