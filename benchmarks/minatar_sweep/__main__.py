"""``python -m benchmarks.minatar_sweep``: run the sweep, or what is left of it."""

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
from gdi.errors import UserError, nearest

PROG = "python -m benchmarks.minatar_sweep"


@dataclass(frozen=True)
class Form:
    """What a sweep consists of unless told otherwise, and where it is kept."""

    agents: tuple[str, ...]
    games: tuple[str, ...]
    seeds: tuple[int, ...] | None
    steps: int
    runs: Path
    results: Path


FULL = Form(tuple(AGENTS), GAMES, None, STEPS, Path("runs/minatar"), Path("docs/results/minatar"))
# Small enough for ten minutes on two cores, which DQN alone would need; a folder of its own, for such runs are nothing
# to mix with the others.
QUICK = Form(
    ("gdi-i3", "ppo"),
    ("Breakout", "SpaceInvaders"),
    (0, 1),
    200_000,
    Path("runs/minatar-quick"),
    Path("runs/minatar-quick/results"),
)


def names(what: str, known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of ``a,b,c``, each one of ``known``, in any case."""
    by_folded = {name.casefold(): name for name in known}

    def parse(text: str) -> tuple[str, ...]:
        for word in text.split(","):
            if word.strip().casefold() not in by_folded:
                hint = nearest(word.strip(), known)
                raise argparse.ArgumentTypeError(f"unknown {what} {word!r}.{hint} There are {', '.join(known)}")
        return tuple(dict.fromkeys(by_folded[word.strip().casefold()] for word in text.split(",")))

    return parse


def seed_list(text: str) -> tuple[int, ...]:
    """``1,2,3``."""
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
        description="GDI, its ablations, PPO and DQN on MinAtar. What is finished is skipped, what stopped goes on. "
        "Ctrl-C is safe.",
        epilog="Afterwards: python -m benchmarks.minatar_sweep.analysis",
    )
    parser.add_argument("--agents", type=names("agent", AGENTS), help=f"such as gdi-i3,ppo; of {', '.join(AGENTS)}")
    parser.add_argument("--games", type=names("game", GAMES), help=f"such as Breakout; of {', '.join(GAMES)}")
    parser.add_argument("--seeds", type=seed_list, help="such as 1,2,3 (default: each agent's own number, 3 or 5)")
    parser.add_argument("--steps", type=positive(whole_number), help=f"of each run (default: {STEPS:,})")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{', '.join(QUICK.agents)} on {', '.join(QUICK.games)}, seeds 0 and 1, {QUICK.steps:,} steps, kept in "
        f"{QUICK.runs}; the other options change that",
    )
    parser.add_argument("--jobs", type=positive(whole_number), help="runs side by side (default: one per core)")
    parser.add_argument("--minutes", type=positive(float), help="stop cleanly when they are used up")
    parser.add_argument("--runs", type=Path, help=f"where runs are kept (default: {FULL.runs})")
    parser.add_argument("--results", type=Path, help=f"where the CSV files are kept (default: {FULL.results})")
    return parser


def unfinished(jobs: list[Job], runs: Path, results: Path) -> list[Job]:
    """The jobs that are neither in the run folders nor in the CSV files; UserError if one cannot be mixed in."""
    for job in jobs:
        check(job, runs, results)
    published = {name: finished_runs(results, name) for name in {job.agent.name for job in jobs}}
    return [job for job in jobs if not is_finished(job, runs) and (job.game, job.seed) not in published[job.agent.name]]


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be a folder: {error.strerror}.") from None


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
        publish(jobs, runs, results)  # what a sweep that was killed had finished
        console.print(f"{len(jobs)} runs, {before} of them finished; kept in {runs}, CSV files in {results}")
        seconds = 60 * (args.minutes or float("inf"))
        with stop_on_signal() as stop, Display(todo, before, console) as screen:
            failed = run_all(todo, runs, results, args.jobs or available_cores(), stop, screen, seconds)
            stopped = stop()
    left = len(unfinished(jobs, runs, results))
    if failed:
        console.print(f"{len(failed)} runs failed: {', '.join(map(str, failed))}")
    if left:
        console.print(f"{left} of {len(jobs)} runs are left: the same command goes on with them.")
    else:
        console.print(f"All {len(jobs)} runs are finished: {results}")
    return 1 if failed else 130 if stopped else 0


def main(argv: list[str] | None = None) -> int:
    """0, 1 if a run failed, 130 if it was interrupted, or 2 for bad input, which is explained in one line."""
    try:
        return sweep(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"{PROG}: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
