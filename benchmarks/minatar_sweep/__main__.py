"""``python -m benchmarks.minatar_sweep``: run the sweep, or the rest of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks.minatar_sweep.agents import AGENTS, GAMES, STEPS
from benchmarks.minatar_sweep.display import Display
from benchmarks.minatar_sweep.jobs import Job, all_jobs
from benchmarks.minatar_sweep.records import check, finished_runs, is_finished, publish
from benchmarks.minatar_sweep.sweep import run_all
from gdi.cli.parsing import OneLineParser, whole_number
from gdi.cores import available_cores
from gdi.errors import UserError, did_you_mean

PROG = "python -m benchmarks.minatar_sweep"


@dataclass(frozen=True)
class SweepSpec:
    """The default agents, games, seeds, steps and folders of a sweep."""

    agents: tuple[str, ...]
    games: tuple[str, ...]
    seeds: tuple[int, ...] | None
    steps: int
    runs: Path
    results: Path


FULL = SweepSpec(tuple(AGENTS), GAMES, None, STEPS, Path("runs/minatar"), Path("docs/results/minatar"))
# The quick sweep takes ten minutes on two cores, which DQN alone would need. It has its own folders, because its runs
# must not mix with the others.
QUICK = SweepSpec(
    ("gdi-i3", "ppo"),
    ("Breakout", "SpaceInvaders"),
    (0, 1),
    200_000,
    Path("runs/minatar-quick"),
    Path("runs/minatar-quick/results"),
)


def names(what: str, known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of ``a,b,c``, where each word is one of ``known`` in any case."""
    by_folded = {name.casefold(): name for name in known}

    def parse(text: str) -> tuple[str, ...]:
        for word in text.split(","):
            if word.strip().casefold() not in by_folded:
                hint = did_you_mean(word.strip(), known)
                raise argparse.ArgumentTypeError(f"unknown {what} {word!r}.{hint} Choose from {', '.join(known)}")
        return tuple(dict.fromkeys(by_folded[word.strip().casefold()] for word in text.split(",")))

    return parse


def seed_list(text: str) -> tuple[int, ...]:
    """Parse a list of seeds such as ``1,2,3``."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of seeds such as 1,2,3")
    return tuple(sorted({int(word) for word in words}))


def positive(parse: Callable[[str], float]) -> Callable[[str], float]:
    def parse_positive(text: str) -> float:
        try:
            value = parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} must be greater than 0")
        return value

    return parse_positive


def make_parser() -> OneLineParser:
    parser = OneLineParser(
        prog=PROG,
        description="GDI, its ablations, PPO and DQN on MinAtar. Finished runs are skipped, and stopped runs continue. "
        "Ctrl-C is safe.",
        epilog="Afterwards: python -m benchmarks.minatar_sweep.analysis",
    )
    parser.add_argument(
        "--agents",
        type=names("agent", AGENTS),
        help=f"agents to run, such as gdi-i3,ppo (choose from {', '.join(AGENTS)})",
    )
    parser.add_argument(
        "--games", type=names("game", GAMES), help=f"games to run, such as Breakout (choose from {', '.join(GAMES)})"
    )
    parser.add_argument("--seeds", type=seed_list, help="seeds, such as 1,2,3 (default: 3 or 5 per agent)")
    parser.add_argument("--steps", type=positive(whole_number), help=f"training steps of each run (default: {STEPS:,})")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{', '.join(QUICK.agents)} on {', '.join(QUICK.games)}, seeds 0 and 1, {QUICK.steps:,} steps, stored in "
        f"{QUICK.runs} (other options override this)",
    )
    parser.add_argument("--jobs", type=positive(whole_number), help="number of parallel runs (default: one per core)")
    parser.add_argument("--minutes", type=positive(float), help="stop cleanly after this many minutes")
    parser.add_argument("--runs", type=Path, help=f"folder of the runs (default: {FULL.runs})")
    parser.add_argument("--results", type=Path, help=f"folder of the CSV files (default: {FULL.results})")
    return parser


def unfinished(jobs: list[Job], runs: Path, results: Path) -> list[Job]:
    """Return the jobs that are neither in the run folders nor in the CSV files.

    Raise UserError if existing results have other settings.
    """
    for job in jobs:
        check(job, runs, results)
    published = {name: finished_runs(results, name) for name in {job.agent.name for job in jobs}}
    return [job for job in jobs if not is_finished(job, runs) and (job.game, job.seed) not in published[job.agent.name]]


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be used as a folder: {error.strerror}.") from None


def sweep(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    form = QUICK if args.quick else FULL
    runs, results = args.runs or form.runs, args.results or form.results
    jobs = all_jobs(
        args.agents or form.agents, args.games or form.games, args.seeds or form.seeds, args.steps or form.steps
    )
    if any(job.agent.is_peer for job in jobs) and find_spec("stable_baselines3") is None:
        raise UserError(
            "the peers need Stable-Baselines3: pip install -e '.[dev]', or choose --agents without ppo, dqn."
        )

    from gdi.runtime.lock import run_lock
    from gdi.runtime.session import stop_on_signal

    todo = unfinished(jobs, runs, results)
    before = len(jobs) - len(todo)
    make_folder(runs)
    make_folder(results)
    console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    with run_lock(runs):
        publish(jobs, runs, results)  # first, results of a sweep that was killed
        console.print(f"{len(jobs)} runs, {before} of them finished. Runs are in {runs}, CSV files in {results}.")
        seconds = 60 * (args.minutes or float("inf"))
        with stop_on_signal() as stop, Display(todo, before, console) as screen:
            failed = run_all(todo, runs, results, args.jobs or available_cores(), stop, screen, seconds)
            stopped = stop()
    left = len(unfinished(jobs, runs, results))
    if failed:
        console.print(f"{len(failed)} runs failed: {', '.join(map(str, failed))}")
    if left:
        console.print(f"{left} of {len(jobs)} runs are left: run the same command again to continue.")
    else:
        console.print(f"All {len(jobs)} runs are finished: {results}")
    return 1 if failed else 130 if stopped else 0


def main(argv: list[str] | None = None) -> int:
    """Return 0, 1 if a run failed, 130 if interrupted, or 2 for bad input, which one line explains."""
    try:
        return sweep(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"{PROG}: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
