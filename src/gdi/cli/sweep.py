"""``gdi sweep``: run many jobs over presets, environments, settings and seeds, and compare them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from gdi.cli.parsing import OneLineParser, path_argument, shorten, whole_number
from gdi.cli.printing import report_console
from gdi.cores import available_cores
from gdi.errors import SignalStop, StorageError, UserError
from gdi.sweep.display import Display, duration
from gdi.sweep.estimate import (
    ASK_ABOVE_SECONDS,
    Trials,
    estimate,
    fitting,
    known_trials,
    missing_trials,
    remember_trials,
)
from gdi.sweep.files import PLAN
from gdi.sweep.jobs import Job, check_plan
from gdi.sweep.plan import Plan, parse_seeds, plan_of, read_plan
from gdi.sweep.record import check_growth, check_runs, store_plan
from gdi.sweep.results import SweepFolder

if TYPE_CHECKING:
    from gdi.sweep.driver import Start

PROG = "gdi sweep"
DESCRIPTION = """\
Train every preset on every environment with every seed, in one folder, and compare them. Finished jobs are skipped,
and stopped ones continue. Ctrl-C is safe.

  gdi sweep plan.toml                                    # a plan file; its folder is runs/plan
  gdi sweep --env CartPole-v1,MinAtar/Breakout-v0 --presets gdi-i3,ppo --seeds 0-4 --steps 1e6 --out runs/first
  gdi sweep runs/first                                   # continue it, or help with it on another machine
  gdi sweep status runs/first"""


@dataclass(frozen=True)
class Request:
    """What the command line asks for: a folder, and the plan that it shall have."""

    folder: Path
    plan: Plan


def positive(parse: Callable[[str], float]) -> Callable[[str], float]:
    """Return a parser of numbers above 0."""

    def parse_positive(text: str) -> float:
        try:
            value = parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a number") from None
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{shorten(text)!r} must be greater than 0")
        return value

    return parse_positive


def make_parser() -> OneLineParser:
    """Return the parser of the command's options."""
    parser = OneLineParser(
        prog=PROG,
        usage=f"{PROG} [PLAN.toml | DIR] [OPTION ...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="?", type=path_argument, metavar="PLAN.toml | DIR", help="a plan file, or the folder of a sweep"
    )
    parser.add_argument("--env", metavar="A,B", help="without a plan file: environments")
    parser.add_argument("--presets", metavar="X,Y", help="without a plan file: presets")
    parser.add_argument("--seeds", metavar="0-4", help="without a plan file: seeds")
    parser.add_argument("--steps", type=whole_number, metavar="N", help="without a plan file: steps of each job")
    parser.add_argument(
        "--out", type=path_argument, metavar="DIR", help="folder of the sweep (default: runs/ and the plan file's name)"
    )
    parser.add_argument("--plan", action="store_true", help="show what the sweep needs, and write nothing")
    parser.add_argument(
        "-j", "--jobs", type=positive(whole_number), metavar="N", help="jobs at once (default: one per core)"
    )
    parser.add_argument("--minutes", type=positive(float), metavar="M", help="stop in order after so many minutes")
    parser.add_argument(
        "--retry", type=whole_number, default=1, metavar="K", help="how often to try a crashed job again (default: 1)"
    )
    parser.add_argument("--yes", action="store_true", help="start a sweep of more than 24 hours without a question")
    parser.add_argument(
        "--backend",
        choices=["local", "ray"],
        default="local",
        help="run jobs here or on a Ray cluster (default: local)",
    )
    parser.add_argument("--ray-address", metavar="ADDRESS", help="with --backend ray: auto, or host:port of a cluster")
    return parser


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


def parse_request(args: argparse.Namespace) -> Request:
    """Return the folder and the plan that the command line means, or raise UserError. Write nothing."""
    if args.retry < 0:
        raise UserError(f"--retry must be 0 or more, not {args.retry}.")
    if args.ray_address and args.backend != "ray":
        raise UserError("--ray-address needs --backend ray: add that, or drop --ray-address.")
    grid = {"--env": args.env, "--presets": args.presets, "--seeds": args.seeds, "--steps": args.steps}
    given = [name for name, value in grid.items() if value is not None]
    if args.what is not None:
        if given:
            raise UserError(f"{args.what} has a plan: drop {', '.join(given)}, or write them into a plan file.")
        return _request_of_path(args.what, args.out)
    if not given:
        raise UserError(f"nothing to run: name a plan file or a folder, or add {', '.join(grid)}. See {PROG} --help.")
    grid["--out"] = args.out
    if missing := [name for name, value in grid.items() if value is None]:
        raise UserError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: add it.")
    tree = {"envs": args.env.split(","), "presets": args.presets.split(","), "steps": args.steps}
    return Request(args.out, plan_of({**tree, "seeds": list(parse_seeds(args.seeds))}))


def _request_of_path(what: Path, out: Path | None) -> Request:
    if what.is_dir():
        if out is not None:
            raise UserError(f"{what} is the folder of the sweep: drop --out.")
        return Request(what, plan_in(what))
    if not what.exists():
        raise UserError(f"{what} does not exist: name a plan file or the folder of a sweep.")
    return Request(out or Path("runs") / what.stem, read_plan(what))


def plan_in(folder: Path) -> Plan:
    """Return the plan of a sweep's folder."""
    if not (folder / PLAN).is_file():
        raise UserError(f"{folder} is not the folder of a sweep: it has no {PLAN}.")
    return read_plan(folder / PLAN)


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
