"""The command line of ``gdi sweep``: its options, and the folder and plan that they mean."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gdi.cli.parsing import OneLineParser, path_argument, shorten, whole_number
from gdi.errors import UserError
from gdi.sweep.files import PLAN
from gdi.sweep.plan import Plan, parse_seeds, plan_of, read_plan

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
        is_missing, add = ("is missing", "add it") if len(missing) == 1 else ("are missing", "add them")
        raise UserError(f"{' and '.join(missing)} {is_missing}: {add}.")
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
