"""``gdi train [PRESET] --env ENV``: train an agent."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gdi.cli.help import HelpFormatter, add_help_options, add_short_options, print_help, wants_help, without_help
from gdi.cli.outcome import PatientConsole, print_outcome, resume_command
from gdi.cli.parsing import JSON_HELP, OneLineParser, parse_fields, path_argument, unknown_argument, whole_number
from gdi.cli.refusals import refuse_environment, refuse_other_kind, refuse_placement, refuse_unfit_learner
from gdi.cli.settings import (
    RENAMED,
    SHORT_NAMES,
    as_typed,
    choose_kinds,
    full_names,
    make_sections,
    setting_options,
    synonyms,
    with_dashes,
)
from gdi.cli.start import starting_config
from gdi.config import SECTIONS, Config, validate
from gdi.errors import DivergenceError, EnvironmentFaultError, SignalStop, StorageError, UserError
from gdi.placement import PlacementConfig
from gdi.presets import DEFAULT_PRESET, PRESETS, SCALES, make_config

PROG = "gdi train"
DESCRIPTION = """\
Train an agent on an environment. PRESET is the agent: {presets} (default: {default}).

  gdi train --env CartPole-v1
  gdi train gdi-h3 --env MinAtar/Breakout-v0 --steps 1e6 --lr 1e-3 --run-dir runs/breakout
  gdi train --run-dir runs/breakout --resume"""
EPILOG = """\
The defaults are those of {preset} at scale {scale}. Add a PRESET, --env or --scale to see theirs.
Every other setting is --section.field VALUE: gdi train [PRESET] --help-all lists them by section.
gdi presets lists the presets and scales. gdi envs lists the environments."""
# Options that take no value.
SWITCHES = ("--json", "--resume", "--trust")


@dataclass(frozen=True)
class TrainArguments:
    """The parsed command line."""

    config: Config
    run_dir: Path | None
    resume: bool
    json: bool
    runtime: Literal["local", "ray"]
    ray_address: str
    placement: PlacementConfig


def make_parser(shown: Config | None = None, everything: bool = True) -> OneLineParser:
    """Return the parser of the command's options.

    With ``shown`` its help has that config's defaults and the short options of settings, which it does not parse.
    Without ``everything`` its help leaves out the options that a newcomer does not need.
    """
    config = shown or make_config(DEFAULT_PRESET)
    parser = OneLineParser(
        prog=PROG,
        usage=f"{PROG} [PRESET] --env ENV [OPTION ...]",
        description=DESCRIPTION.format(presets=", ".join(PRESETS), default=DEFAULT_PRESET),
        epilog=None if everything else EPILOG.format(preset=config.preset, scale=config.scale),
        formatter_class=HelpFormatter,
        add_help=False,
    )

    def advanced(text: str) -> str:
        return text if everything else argparse.SUPPRESS

    parser.add_argument("--env", help="environment, such as CartPole-v1, MinAtar/Breakout-v0, pong or module:Name-v0")
    parser.add_argument(
        *("--steps", "--total-timesteps"),
        type=whole_number,
        metavar="N",
        help=f"environment steps to train for, such as 1e6 (default: {config.steps})",
    )
    parser.add_argument(
        "--seed", type=whole_number, metavar="N", help="seed for all randomness in the run (default: 0)"
    )
    if shown is not None:
        add_short_options(parser, shown)
    parser.add_argument(
        "--scale", help=f"size of the run: {', '.join(SCALES)} (default: the one that fits the environment)"
    )
    parser.add_argument(
        "--run-dir",
        type=path_argument,
        metavar="DIR",
        help="folder for the config, logs and checkpoints (default: a new one under runs/)",
    )
    parser.add_argument("--resume", action="store_true", help="continue the run in --run-dir")
    parser.add_argument(
        "--trust", action="store_true", help=advanced("with --resume: import the modules that the run folder names")
    )
    parser.add_argument(
        "--runtime",
        choices=["local", "ray"],
        default="local",
        help=advanced("train in this process or on a Ray cluster (default: local)"),
    )
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help=advanced("with --runtime ray: auto, or host:port of a cluster (default: start one on this machine)"),
    )
    parser.add_argument("--json", action="store_true", help=advanced(JSON_HELP))
    add_help_options(parser)
    return parser


def split_preset(argv: list[str]) -> tuple[str | None, list[str]]:
    """Separate the preset from the other words.

    It is the first word, or a later one that is the name of a preset. Any other later word may be a value of the
    option before it.
    """
    if argv and not argv[0].startswith("-"):
        return argv[0], argv[1:]
    for i in range(1, len(argv)):
        before = argv[i - 1]
        takes_no_value = not before.startswith("--") or "=" in before or before in SWITCHES
        if argv[i] in PRESETS and takes_no_value:
            return argv[i], argv[:i] + argv[i + 1 :]
    return None, argv


def parse(argv: list[str], prog: str = PROG) -> TrainArguments:
    """Parse the command line into a valid config and where to run it, or raise UserError."""
    parser = make_parser()
    preset, options = split_preset(with_dashes(argv))
    if preset is not None and preset not in PRESETS:
        refuse_environment(preset)
    args, rest = parser.parse_known_args(options)
    if any(word.partition("=")[0] == "--env.id" for word in rest):
        raise UserError("--env.id is not an option: name the environment with --env, because the scale depends on it.")
    with as_typed(options):
        config, rest = choose_kinds(starting_config(args, preset), full_names(rest), prog)
        sections, unknown = parse_fields(make_sections(config), rest, prog)
        if unknown:
            refuse_environment(unknown[0])
            refuse_other_kind(unknown[0], config)
            known = [*parser.option_names(), *SHORT_NAMES, *setting_options(sections)]
            raise UserError(unknown_argument(unknown[0], f"{prog} --help-all", known, {**RENAMED, **synonyms(known)}))
        config = replace(config, **{name: getattr(sections, name) for name in SECTIONS})
        refuse_unfit_learner(config)
        validate(config)
        refuse_placement(args, sections.placement, config)
    address = args.ray_address or ""
    return TrainArguments(config, args.run_dir, args.resume, args.json, args.runtime, address, sections.placement)


def parse_shown(argv: list[str], prog: str = PROG) -> Config:
    """Return the config whose defaults the help shows, from the preset, environment, scale and kinds in the words."""
    preset, options = split_preset(with_dashes(without_help(argv)))
    if preset is not None and preset not in PRESETS:
        refuse_environment(preset)
    args, rest = make_parser().parse_known_args(options)
    config = make_config(preset or DEFAULT_PRESET, args.env or "", scale=args.scale)
    return choose_kinds(config, full_names(rest), prog)[0]


def run(argv: list[str]) -> int:
    """Train an agent, and print its result."""
    if which := wants_help(argv):
        print_help(which, parse_shown(argv), make_parser, placement=True)
        return 0
    choice = parse(argv)
    config = choice.config

    from gdi.api import train
    from gdi.report.console import LiveConsole
    from gdi.runtime.exceptions import StallError
    from gdi.runtime.folder import default_run_dir
    from gdi.runtime.run_log import FAULTS

    folder = choice.run_dir or default_run_dir(config)
    stream = sys.stderr if choice.json else sys.stdout
    again = resume_command(folder, choice)
    console = PatientConsole(LiveConsole(config, stream, folder), config.steps)
    try:
        with as_typed(argv):
            result = train(
                config,
                folder,
                resume=choice.resume,
                console=console,
                runtime=choice.runtime,
                placement=choice.placement,
                ray_address=choice.ray_address,
            )
    except DivergenceError as error:
        print(f"gdi: training diverged: {error} The state is saved in {folder}.", file=sys.stderr)
        return 1
    except EnvironmentFaultError as error:
        told = f"{error}. The run is saved, with the traceback in {folder / FAULTS}. Continue with: {again}"
        print(f"gdi: stopped: {told}", file=sys.stderr)
        return 1
    except StorageError as error:
        print(f"gdi: stopped: {error}", file=sys.stderr)
        return 1
    except StallError as error:
        print(f"gdi: stopped: {error}", file=sys.stderr)
        if folder.is_dir():
            print(f"Continue from the newest checkpoint: {again}", file=sys.stderr)
        return 1
    finally:
        console.close()
    if choice.json:
        print(json.dumps(result.to_dict()))
    else:
        print_outcome(result, config, again, was_finished=console.was_finished)
    if result.stopped_by is not None:
        raise SignalStop(result.stopped_by)
    return 0
