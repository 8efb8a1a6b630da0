"""``gdi sweep``: run many jobs over presets, environments, settings and seeds, and compare them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from gdi.cli.parsing import OneLineParser, path_argument
from gdi.cli.printing import report_console
from gdi.cli.sweep_request import PROG, Request, make_parser, parse_request, plan_in
from gdi.clock import duration
from gdi.cores import available_cores
from gdi.errors import SignalStop, StorageError, UserError
from gdi.sweep.display import Display
from gdi.sweep.estimate import (
    ASK_ABOVE_SECONDS,
    Trials,
    estimate,
    fitting,
    known_trials,
    missing_trials,
    remember_trials,
)
from gdi.sweep.jobs import Job, check_plan
from gdi.sweep.record import check_growth, check_runs, store_plan
from gdi.sweep.results import SweepFolder

if TYPE_CHECKING:
    from gdi.sweep.driver import Start


def run(argv: list[str]) -> int:
    """Run a sweep, or show its plan or its status."""
    if argv[:1] == ["status"]:
        return show_status(argv[1:])
    args = make_parser().parse_args(argv)
    try:
        return sweep(parse_request(args), args)
    except StorageError as error:
        print(f"gdi: stopped: {error}", file=sys.stderr)
        return 1


def show_status(argv: list[str]) -> int:
    """Print the state of a sweep. Change nothing."""
    parser = OneLineParser(prog=f"{PROG} status", description="Show how far a sweep is.")
    parser.add_argument("folder", type=path_argument, metavar="DIR", help="the folder of the sweep")
    args = parser.parse_args(argv)
    plan_in(args.folder)

    from gdi.sweep.summary import print_results, status_table

    folder, console = SweepFolder(args.folder), report_console()
    console.print(status_table(folder))
    print_results(folder, console)
    return 0


def sweep(request: Request, args: argparse.Namespace) -> int:
    """Check everything, show the plan, and run the jobs that are left."""
    folder = SweepFolder(request.folder)
    check_growth(request.folder, request.plan)
    jobs = check_plan(request.plan)
    check_runs(request.folder, jobs)
    with backend(args) as cores:
        at_once, trials = plan_ahead(folder, jobs, cores, args)
        if args.plan:
            return 0
        store_plan(request.folder, request.plan)
        remember_trials(request.folder, trials)
        folder.rebuild()  # first, results of a sweep that was killed
        return run_jobs(folder, jobs, at_once, args)


@contextmanager
def backend(args: argparse.Namespace) -> Iterator[int]:
    """Connect to the cluster of ``--backend ray``; yield how many jobs run at once by default."""
    if args.backend == "local":
        yield available_cores()
        return
    from gdi.sweep.on_ray import cluster_jobs, ray_cluster

    with ray_cluster(args.ray_address or ""):
        yield cluster_jobs() if args.ray_address else available_cores()


def plan_ahead(folder: SweepFolder, jobs: Sequence[Job], cores: int, args: argparse.Namespace) -> tuple[int, Trials]:
    """Print what the sweep needs, and ask before a long one. Return the number of jobs at once, and what was tried."""
    from gdi.sweep.process import import_early

    import_early(jobs)
    asked = args.jobs or cores
    known = known_trials(folder.path)
    found = missing_trials(jobs, known, folder.status, min(asked, available_cores()))
    trials = {**known, **found}
    # Of the other machines of a cluster nothing is known.
    fits = fitting(trials.values(), asked) if args.backend == "local" else asked
    if args.jobs and fits < args.jobs:
        raise UserError(f"{args.jobs} jobs at once do not fit into the memory: add -j {fits}.")
    needs = estimate(jobs, trials, folder.status, fits, folder.path)
    print(needs.text(), flush=True)
    if not args.plan:
        ask_if_long(needs.seconds, args)
    return fits, trials


def ask_if_long(seconds: float, args: argparse.Namespace) -> None:
    """Ask before a sweep of more than a day, or raise UserError if there is nobody to ask."""
    if args.yes or min(seconds, 60 * (args.minutes or float("inf"))) <= ASK_ABOVE_SECONDS:
        return
    text = f"this sweep takes about {duration(seconds)}"
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise UserError(f"{text}: add --yes to start it, or --minutes to stop it earlier.")
    if input(f"{text[:1].upper()}{text[1:]}. Start it? [y/N] ").strip().casefold() not in ("y", "yes"):
        raise UserError("not started.")


def run_jobs(folder: SweepFolder, jobs: Sequence[Job], at_once: int, args: argparse.Namespace) -> int:
    """Run the jobs that are left, and print the results."""
    from gdi.runtime.stopping import stop_on_signal
    from gdi.sweep.driver import Driver, Options

    console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    todo = [job for job in jobs if not folder.status(job).is_result]
    options = Options(at_once, args.retry, 60 * (args.minutes or float("inf")))
    with stop_on_signal() as stop, Display(todo, len(jobs) - len(todo), console) as screen:
        outcome = Driver(folder, starter(folder, args.backend), options, screen).run(todo, stop)
    folder.rebuild()
    show_end(folder, jobs, len(outcome.elsewhere))
    if stop.signal is not None:
        raise SignalStop(stop.signal)
    return 1 if outcome.failed else 0


def starter(folder: SweepFolder, where: str) -> Start:
    """Return the function that starts an attempt at a job."""
    if where == "ray":
        from gdi.sweep.on_ray import RayAttempt

        return lambda job, claim: RayAttempt(folder.path, job, claim)
    from gdi.sweep.process import Process

    return lambda job, claim: Process(folder.path, job, claim)


def show_end(folder: SweepFolder, jobs: Sequence[Job], elsewhere: int) -> None:
    """Print the table of scores, what is left, and where the files are."""
    from gdi.sweep.files import FAILURES, RESULTS
    from gdi.sweep.summary import draw_figures, print_results

    console = report_console()
    left = [job for job in jobs if not folder.status(job).is_result]
    failed = [job for job in left if folder.failure(job) is not None]
    print_results(folder, console)
    if failed:
        print(f"{len(failed)} jobs failed: see {folder.path / FAILURES}. The same command tries them again.")
    if elsewhere:
        print(f"{elsewhere} jobs are in the hands of other processes.")
    if len(left) > len(failed) + elsewhere:
        print(f"{len(left) - len(failed) - elsewhere} of {len(jobs)} jobs are left: gdi sweep {folder.path}")
    print(f"Results: {folder.path / RESULTS}")
    if not left and (figures := draw_figures(folder.path)) is not None:
        print(f"Figures: {figures}")
