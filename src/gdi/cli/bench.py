"""``gdi bench --env ENV``: measure training speed, where the time goes, and the limit that the network sets."""

from __future__ import annotations

import json
from dataclasses import asdict

from gdi.cli.help import HelpFormatter, add_help_options, add_short_options, print_help, wants_help, without_help
from gdi.cli.parsing import JSON_HELP, OneLineParser, whole_number
from gdi.cli.settings import with_dashes
from gdi.cli.train import parse, parse_shown
from gdi.config import Config
from gdi.errors import UserError
from gdi.presets import PRESETS, SCALES

PROG = "gdi bench"
EPILOG = """\
The defaults are those of {preset} at scale {scale}. Add a PRESET, --env or --scale to see theirs.
Every other setting is --section.field VALUE, as in gdi train: gdi bench --help-all lists them."""


def make_parser(shown: Config | None = None, everything: bool = True) -> OneLineParser:
    """Return the parser of the command's own options; with ``shown`` its help also has those of ``gdi train``."""
    parser = OneLineParser(
        prog=PROG,
        usage=f"{PROG} [PRESET] --env ENV [OPTION ...]",
        description=f"Measure training speed and what limits it. PRESET is the agent: {', '.join(PRESETS)}.",
        epilog=None if everything or shown is None else EPILOG.format(preset=shown.preset, scale=shown.scale),
        formatter_class=HelpFormatter,
        add_help=False,
    )
    parser.add_argument(
        "--seconds",
        type=whole_number,
        default=60,
        metavar="N",
        help="seconds to train for, plus twice as many for the bare network and environments (default: 60)",
    )
    if shown is not None:
        parser.add_argument("--env", help="environment, such as CartPole-v1, MinAtar/Breakout-v0 or pong")
        parser.add_argument(
            "--scale", help=f"size of the run: {', '.join(SCALES)} (default: the one that fits the environment)"
        )
        add_short_options(parser, shown)
        parser.add_argument("--json", action="store_true", help=JSON_HELP)
    add_help_options(parser)
    return parser


def run(argv: list[str]) -> int:
    """Measure training speed, and print it."""
    if which := wants_help(argv):
        _, rest = make_parser().parse_known_args(without_help(argv))
        print_help(which, parse_shown(rest, PROG), make_parser, placement=False)
        return 0
    args, rest = make_parser().parse_known_args(with_dashes(argv))
    if args.seconds < 1:
        raise UserError(f"--seconds must be greater than 0, not {args.seconds}.")
    choice = parse(rest, PROG)
    if choice.runtime != "local":
        raise UserError("gdi bench measures the local runtime: drop --runtime.")
    given = {word.partition("=")[0] for word in rest}
    if choice.run_dir is not None or choice.resume or given & {"--steps", "--total-timesteps"}:
        raise UserError("gdi bench runs for --seconds and saves nothing: drop --steps, --run-dir and --resume.")

    from gdi.runtime.bench import bench

    config = choice.config
    result = bench(config, args.seconds)
    if choice.json:
        numbers = asdict(result)
        print(json.dumps({"env": config.env.id, "preset": config.preset, "scale": config.scale, **numbers}))
        return 0
    print(f"{config.env.id}, {config.preset} at scale '{config.scale}'")
    print(f"  training   {result.steps_per_second:8,.0f} steps/s   {result.frames_per_second:,.0f} frames/s")
    print(f"  ceiling    {result.ceiling_steps_per_second:8,.0f} steps/s   (the network alone, forward and backward)")
    print(f"             training is {result.fraction_of_ceiling:.0%} of that")
    print(f"  reachable  {result.reachable_steps_per_second:8,.0f} steps/s   (the network and the environments alone)")
    print(f"             training is {result.fraction_of_reachable:.0%} of that")
    shares = "   ".join(f"{name} {share:.0%}" for name, share in result.shares.items())
    print(f"  time goes to   {shares}")
    print(f"  bottleneck     {result.bottleneck}")
    return 0
