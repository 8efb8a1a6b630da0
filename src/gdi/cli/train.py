"""``gdi train [PRESET] --env ENV``: train an agent."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from gdi.cli.help import HelpFormatter, add_help_options, add_short_options, print_help, wants_help, without_help
from gdi.cli.parsing import JSON_HELP, OneLineParser, parse_fields, unknown_argument, whole_number
from gdi.cli.settings import (
    PLACEMENT,
    RENAMED,
    SHORT_NAMES,
    SYNONYMS,
    choose_kinds,
    full_names,
    make_sections,
    option_name,
    setting_options,
    with_dashes,
)
from gdi.config import SECTIONS, Config, validate
from gdi.envs.names import canonical_env_id
from gdi.errors import UserError, fold
from gdi.placement import PlacementConfig, validate_placement
from gdi.presets import PRESETS, SCALES, make_config
from gdi.scores.games import find_game

PROG = "gdi train"
DEFAULT_PRESET = "gdi-i3"
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
        type=Path,
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


def refuse_environment(word: str) -> None:
    """Raise a UserError if a word that should be a preset is an environment or a run folder."""
    if (env_id := find_environment(word)) is not None:
        raise UserError(f"{word} is an environment, not a preset: use --env {env_id}.")
    if Path(word).is_dir():
        raise UserError(f"{word} is a folder, not a preset: use --run-dir {word} --resume to continue the run in it.")


def find_environment(word: str) -> str | None:
    """Return the environment that a word names, or None. ``cartpole`` names the newest CartPole."""
    if find_game(word) is not None or re.search(r"\w:\w|-v\d+$", word) or re.match("(minatar|ale|toy)/", word, re.I):
        return word
    import gymnasium  # not at the top, because it is needed for this message only

    versions = {
        spec.version or 0: env_id
        for env_id, spec in gymnasium.registry.items()
        if spec.namespace is None and fold(spec.name) == fold(word)
    }
    return versions[max(versions)] if versions else None


def parse(argv: list[str], prog: str = PROG) -> TrainArguments:
    """Parse the command line into a valid config and where to run it, or raise UserError."""
    parser = make_parser()
    preset, options = split_preset(with_dashes(argv))
    if preset is not None and preset not in PRESETS:
        refuse_environment(preset)
    args, rest = parser.parse_known_args(options)
    if any(word.partition("=")[0] == "--env.id" for word in rest):
        raise UserError("--env.id is not an option: name the environment with --env, because the scale depends on it.")
    stored = None
    if args.resume:
        if args.run_dir is None:
            raise UserError("--resume needs a run to continue: add --run-dir with its folder.")
        if args.run_dir.is_dir() and any(args.run_dir.iterdir()):
            from gdi.runtime.folder import read_config

            stored = validate(read_config(args.run_dir, trust=args.trust))
    if stored is not None:
        if preset is not None:
            make_config(preset)  # reports an unknown name as such, not as a difference
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
        config = make_config(preset or DEFAULT_PRESET, env_id, scale=args.scale, steps=args.steps, seed=args.seed or 0)
    config, rest = choose_kinds(config, full_names(rest), prog)
    sections, unknown = parse_fields(make_sections(config), rest, prog)
    if unknown:
        refuse_environment(unknown[0])
        known = [*parser.option_names(), *SHORT_NAMES, *setting_options(sections)]
        raise UserError(unknown_argument(unknown[0], prog, known, {**RENAMED, **SYNONYMS}))
    config = validate(replace(config, **{name: getattr(sections, name) for name in SECTIONS}))
    if args.runtime == "local":
        for option, given in (("--ray-address", args.ray_address), ("--placement.…", sections.placement != PLACEMENT)):
            if given:
                raise UserError(f"{option} needs --runtime ray: add that, or drop {option}.")
    else:
        validate_placement(sections.placement, config)
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


def resume_command(folder: Path, choice: TrainArguments) -> str:
    """Return the command that continues the run.

    It repeats where the run was placed, which is not part of the run's config.
    """
    words = ["gdi train --run-dir", shlex.quote(str(folder)), "--resume"]
    if choice.runtime == "ray":
        words.append("--runtime ray")
        if choice.ray_address:
            words.append(f"--ray-address {choice.ray_address}")
        for field in fields(choice.placement):
            value, option = getattr(choice.placement, field.name), option_name("placement", field.name)
            if value != getattr(PLACEMENT, field.name):
                words.append(option if value is True else f"{option} {value}")
    return " ".join(words)


def run(argv: list[str]) -> int:
    """Train an agent, and print its result."""
    if which := wants_help(argv):
        print_help(which, parse_shown(argv), make_parser, placement=True)
        return 0
    choice = parse(argv)
    config = choice.config

    from gdi.api import train
    from gdi.errors import DivergenceError
    from gdi.evaluation import normalized_scores
    from gdi.report.console import LiveConsole, format_normalized
    from gdi.runtime.exceptions import StallError
    from gdi.runtime.folder import default_run_dir

    folder = choice.run_dir or default_run_dir(config)
    stream = sys.stderr if choice.json else sys.stdout
    again = resume_command(folder, choice)
    console = LiveConsole(config, stream, folder)
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
    except DivergenceError as error:
        print(f"gdi: training diverged: {error} The state is saved in {folder}.", file=sys.stderr)
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
        return 0
    if not result.finished:
        print(f"Stopped at {result.steps:,} of {config.steps:,} steps. Everything is saved.")
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
        print(f"  {format_normalized(scores)}   protocol {e.protocol}")
    # After `make demo` gdi is only in .venv/bin.
    own = "python -m gdi" if sys.argv[0].endswith(".py") else sys.argv[0]
    gdi = "gdi" if shutil.which("gdi") else own
    print(f"The run is saved in {folder}. Next:")
    print(f"  {gdi} evaluate {folder} --episodes 100")
    print(f"  tensorboard --logdir {folder}/tensorboard    (pip install tensorboard)")
    return 0
