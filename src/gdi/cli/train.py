"""``gdi train [PRESET] --env ENV``: train an agent."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gdi.cli.parsing import OneLineParser, fields_help, parse_fields, whole_number
from gdi.config import KIND_SECTIONS, MOVED, SECTIONS, Config, kind_of, kinds, validate
from gdi.envs.names import canonical_env_id
from gdi.errors import UserError, nearest
from gdi.placement import PlacementConfig, validate_placement
from gdi.presets import PRESETS, SCALES, make_config

PROG = "gdi train"
PLACEMENT = PlacementConfig()
SECTIONS_HELP = """Every other setting, by section. "Table H" is the paper's table of hyperparameters, the quoted words
are its row; words such as alg:bva are labels in the paper's LaTeX source."""
# Sections whose kind can be chosen, and their kinds.
KINDS = {name: kinds(name) for name in KIND_SECTIONS if len(kinds(name)) > 1}


def make_sections(config: Config) -> Any:
    """The sections of a config as one dataclass of their concrete kinds, so that help shows the options of those only.

    The placement is no part of a run's config: a run may be resumed with another one. It needs --runtime ray.
    """
    own = [(name, type(getattr(config, name))) for name in SECTIONS]
    cls = make_dataclass("Sections", [*own, ("placement", PlacementConfig, field(default=PLACEMENT))], frozen=True)
    cls.__doc__ = SECTIONS_HELP
    return cls(**{name: getattr(config, name) for name in SECTIONS})


def choose_kinds(config: Config, words: list[str]) -> tuple[Config, list[str]]:
    """Read ``--controller uniform``, also in its old form with ``.kind``, first: it swaps in that kind's defaults.

    Returns the config with the chosen kinds, and the other words.
    """
    rest = list(words)
    for section, known in KINDS.items():
        flag = f"--{section.replace('_', '-')}"
        for option in (flag, f"{flag}.kind"):
            while (found := _take_option(rest, option)) is not None:
                if found not in known:
                    raise UserError(f"{flag} {found!r} is no kind.{nearest(found, known)} Kinds: {', '.join(known)}.")
                if found != kind_of(getattr(config, section)):
                    config = replace(config, **{section: known[found]()})
    return config, rest


def _take_option(words: list[str], option: str) -> str | None:
    """Remove ``option VALUE`` or ``option=VALUE`` from the words; returns the value, None if it is not there."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name != option:
            continue
        if equals:
            del words[i]
            return value
        if i + 1 == len(words):
            raise UserError(f"{option} needs a value. See {PROG} --help.")
        value = words[i + 1]
        del words[i : i + 2]
        return value
    return None


# Options of fields that moved to another section: old name -> present one.
RENAMED = {f"--{old}".replace("_", "-"): f"--{new}".replace("_", "-") for old, new in MOVED.items()}


def present_options(words: list[str]) -> list[str]:
    """The words with every option under its present name."""
    parts = (word.partition("=") for word in words)
    return ["".join((RENAMED.get(name.replace("_", "-"), name), equals, value)) for name, equals, value in parts]


@dataclass(frozen=True)
class Choice:
    """What the command line asks for."""

    config: Config
    run_dir: Path | None
    resume: bool
    json: bool
    runtime: Literal["local", "ray"]
    ray_address: str
    placement: PlacementConfig


def make_parser() -> OneLineParser:
    parser = OneLineParser(
        prog=PROG,
        usage="gdi train [PRESET] --env ENV [--steps N] [--seed S] [--scale SCALE] [--run-dir DIR] [--resume] "
        "[--trust] [--runtime {local,ray}] [--ray-address ADDRESS] [--json] [--SECTION.FIELD VALUE ...]",
        description=f"Train a GDI agent on an environment. PRESET is one of {', '.join(PRESETS)} (default: gdi-i3).",
        add_help=False,
    )
    parser.add_argument("--env", help="environment id, for example CartPole-v1, MinAtar/Breakout-v0 or pong")
    parser.add_argument(
        "--steps", type=whole_number, help="environment transitions to train on, such as 1e6 (default: the scale's)"
    )
    parser.add_argument("--seed", type=whole_number, help="every random choice descends from it (default: 0)")
    parser.add_argument("--scale", help=f"one of {', '.join(SCALES)} (default: what fits the environment)")
    parser.add_argument("--run-dir", type=Path, help="where the run is kept (default: a new folder under runs/)")
    parser.add_argument("--resume", action="store_true", help="continue the run in --run-dir where it was stopped")
    parser.add_argument(
        "--trust", action="store_true", help="with --resume: import the modules that the run folder names"
    )
    parser.add_argument("--runtime", choices=["local", "ray"], default="local", help="where it runs (default: local)")
    parser.add_argument(
        "--ray-address", help="with --runtime ray: auto or host:port of a cluster (default: start one on this machine)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    for section, known in KINDS.items():  # read by choose_kinds; named here for the help
        flag = f"--{section.replace('_', '-')}"
        parser.description = f"{parser.description} {flag} is one of {', '.join(known)}."
    parser.add_argument("-h", "--help", action="store_true", help="show this help")
    return parser


def split_preset(argv: list[str]) -> tuple[str | None, list[str]]:
    """The preset out of the arguments: the first of them, or a later one that is a preset's name by itself.

    Any other later word may be the value of a ``--section.field`` before it.
    """
    if argv and not argv[0].startswith("-"):
        return argv[0], argv[1:]
    for i in range(1, len(argv)):
        before = argv[i - 1]
        takes_no_value = not before.startswith("--") or "=" in before or before in ("--json", "--resume", "--trust")
        if argv[i] in PRESETS and takes_no_value:
            return argv[i], argv[:i] + argv[i + 1 :]
    return None, argv


def parse(argv: list[str]) -> Choice:
    parser = make_parser()
    preset, options = split_preset(argv)
    args, rest = parser.parse_known_args(options)
    if any(word.partition("=")[0] == "--env.id" for word in rest):
        raise UserError("the environment is named by --env, not --env.id: the scale depends on it.")
    stored = None
    if args.resume:
        if args.run_dir is None:
            raise UserError("--resume needs --run-dir, the folder of the run to continue.")
        if args.run_dir.is_dir() and any(args.run_dir.iterdir()):
            from gdi.runtime.folder import read_config

            stored = read_config(args.run_dir, trust=args.trust)
    if stored is not None:
        if preset is not None:
            make_config(preset)  # an unknown name is told as such, not as a difference
        config = replace(
            stored,
            preset=preset or stored.preset,
            scale=args.scale or stored.scale,
            env=replace(stored.env, id=canonical_env_id(args.env) if args.env else stored.env.id),
            steps=stored.steps if args.steps is None else args.steps,
            seed=stored.seed if args.seed is None else args.seed,
        )
    else:
        env_id = args.env or ""
        config = make_config(preset or "gdi-i3", env_id, scale=args.scale, steps=args.steps, seed=args.seed or 0)
    config, rest = choose_kinds(config, present_options(rest))
    sections = parse_fields(make_sections(config), rest, PROG, parser.option_names(), RENAMED)
    config = validate(replace(config, **{name: getattr(sections, name) for name in SECTIONS}))
    if args.runtime == "local":
        for option, given in (("--ray-address", args.ray_address), ("--placement.…", sections.placement != PLACEMENT)):
            if given:
                raise UserError(f"{option} needs --runtime ray: add that, or drop {option}.")
    else:
        validate_placement(sections.placement, config)
    address = args.ray_address or ""
    return Choice(config, args.run_dir, args.resume, args.json, args.runtime, address, sections.placement)


def resume_command(folder: Path, choice: Choice) -> str:
    """What continues the run as it ran: where it ran is no part of its config, so it is said again."""
    words = ["gdi train --run-dir", shlex.quote(str(folder)), "--resume"]
    if choice.runtime == "ray":
        words.append("--runtime ray")
        if choice.ray_address:
            words.append(f"--ray-address {choice.ray_address}")
        for field in fields(choice.placement):
            value, option = getattr(choice.placement, field.name), f"--placement.{field.name.replace('_', '-')}"
            if value != getattr(PLACEMENT, field.name):
                words.append(option if value is True else f"{option} {value}")
    return " ".join(words)


def run(argv: list[str]) -> int:
    if "-h" in argv or "--help" in argv:
        print(make_parser().format_help())
        preset, options = split_preset([word for word in argv if word not in ("-h", "--help")])
        args, others = make_parser().parse_known_args(options)
        shown = make_config(preset or "gdi-i3", args.env or "", scale=args.scale)
        told = (
            f"Defaults below are those of {shown.preset} at scale {shown.scale}, which trains for {shown.steps:,} steps"
        )
        print(f"{told}; with another PRESET, --env or --scale, --help shows theirs.\n")
        print(fields_help(make_sections(choose_kinds(shown, others)[0]), PROG))
        return 0
    choice = parse(argv)
    config = choice.config

    from gdi.api import train
    from gdi.errors import Diverged
    from gdi.evaluation import normalized_scores
    from gdi.report.console import LiveConsole, normalised_text
    from gdi.runtime.faults import Stalled
    from gdi.runtime.folder import default_run_dir

    folder = choice.run_dir or default_run_dir(config)
    stream = sys.stderr if choice.json else sys.stdout
    again = resume_command(folder, choice)
    console = LiveConsole(config, stream)
    try:
        result = train(
            config,
            folder,
            resume=choice.resume,
            console=console,
            runtime=choice.runtime,
            placement=choice.placement,
            ray_address=choice.ray_address,
        )
    except Diverged as error:
        print(f"gdi: training diverged: {error} The state is saved in {folder}.", file=sys.stderr)
        return 1
    except Stalled as error:
        print(f"gdi: stopped: {error}", file=sys.stderr)
        if folder.is_dir():
            print(f"Continue from the newest checkpoint: {again}", file=sys.stderr)
        return 1
    finally:
        console.close()
    if choice.json:
        print(json.dumps(result.to_dict()))
        return 0
    if not result.finished:
        print(f"Stopped at {result.steps:,} of {config.steps:,} steps; everything is saved.")
        print(f"  continue   {again}")
        return 0
    assert result.evaluation is not None
    e = result.evaluation
    print(
        f"Done: {result.steps:,} steps in {result.seconds:,.0f} s. Evaluation over {e.episodes} episodes: "
        f"mean {e.mean:.2f}, median {e.median:.2f}, min {e.min:.4g}, max {e.max:.4g}."
    )
    scores = normalized_scores(e)
    if scores["hns"] is not None:
        print(f"  {normalised_text(scores)}   protocol {e.protocol}")
    gdi = "gdi" if shutil.which("gdi") else sys.argv[0]  # after `make demo` it is only in .venv/bin
    print(f"The run is kept in {folder}. Next:")
    print(f"  {gdi} evaluate {folder} --episodes 100")
    print(f"  tensorboard --logdir {folder}/tensorboard    (pip install tensorboard)")
    return 0
