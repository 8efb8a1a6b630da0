"""The finished runs of a sweep over systems as one CSV file, each with a greedy evaluation of its last network.

    python -m benchmarks.system_runs runs/systems [MORE_SWEEPS ...] -o docs/results/systems/runs.csv

``mean`` is the last evaluation of a run, ``greedy_mean`` another one of as many episodes that plays the most probable
action, and ``training_mean`` the mean return of the training episodes that ended in the last 100,000 steps. Rows of
other runs stay in the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from gdi.api import load
from gdi.cli.parsing import OneLineParser, path_argument
from gdi.errors import UserError
from gdi.report.episodes import read_episodes
from gdi.runtime.run_log import EPISODES
from gdi.sweep.files import read_csv, write_csv
from gdi.sweep.jobs import Job
from gdi.sweep.results import SweepFolder

PROG = "python -m benchmarks.system_runs"
KEYS = ("env", "preset", "variant", "seed")
COLUMNS = (*KEYS, "steps", "mean", "greedy_mean", "training_mean", "returns", "greedy_returns")
TRAINING_STEPS = 100_000
GREEDY_SEED = 0
Row = dict[str, str]


def run_row(job: Job, folder: SweepFolder) -> Row:
    """Return the row of a finished run, which is evaluated greedily here."""
    last = folder.status(job).evaluations[-1]
    run = job.folder(folder.path)
    greedy = load(run).evaluate(int(last["episodes"]), GREEDY_SEED, greedy=True)
    episodes = read_episodes(run / EPISODES)
    recent = episodes.episode_return[episodes.steps > job.steps - TRAINING_STEPS]
    return {
        **{"env": job.env, "preset": job.preset, "variant": job.variant, "seed": str(job.seed)},
        **{"steps": str(job.steps), "mean": f"{last['mean']:.8g}", "greedy_mean": f"{greedy.mean:.8g}"},
        "training_mean": f"{np.mean(recent):.5g}" if len(recent) else "",
        "returns": numbers(last["returns"]),
        "greedy_returns": numbers(greedy.returns),
    }


def numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.8g}" for value in values)


def new_rows(sweep: Path, known: set[tuple[str, ...]]) -> Iterator[Row]:
    """Yield the rows of the finished runs that are not known yet."""
    folder = SweepFolder(sweep)
    for job in folder.jobs():
        key = (job.env, job.preset, job.variant, str(job.seed))
        if key not in known and not job.is_peer and folder.status(job).word == "finished":
            yield run_row(job, folder)


def main(argv: Sequence[str]) -> int:
    parser = OneLineParser(prog=PROG, description="Write the finished runs of sweeps into one CSV file.")
    parser.add_argument("sweeps", nargs="+", type=path_argument, help="folders of sweeps")
    parser.add_argument("-o", "--out", type=path_argument, required=True, help="CSV file, whose other rows stay")
    args = parser.parse_args(argv)
    try:
        rows = {tuple(row[name] for name in KEYS): row for row in read_csv(args.out)}
        for sweep in args.sweeps:
            for row in new_rows(sweep, set(rows)):
                rows[tuple(row[name] for name in KEYS)] = row
                write_csv(args.out, COLUMNS, (rows[key] for key in sorted(rows)))
    except UserError as error:
        print(f"{PROG}: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
