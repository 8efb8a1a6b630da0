"""``gdi bench --env ENV``: training speed, what the time goes to, and the ceiling that the network's kernels set."""

from __future__ import annotations

import json
from dataclasses import asdict

from gdi.cli.parsing import OneLineParser, whole_number
from gdi.cli.train import parse
from gdi.errors import UserError


def run(argv: list[str]) -> int:
    parser = OneLineParser(
        prog="gdi bench",
        usage="gdi bench [PRESET] --env ENV [--scale SCALE] [--seconds S] [--json] [--SECTION.FIELD VALUE ...]",
        description="Measure training speed. PRESET, --scale and --SECTION.FIELD are those of gdi train.",
        add_help=False,
    )
    parser.add_argument(
        "--seconds", type=whole_number, default=60, help="of training, and twice more of bare kernels (default: 60)"
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help")
    args, rest = parser.parse_known_args(argv)
    if args.help:
        print(parser.format_help())
        return 0
    if args.seconds < 1:
        raise UserError(f"--seconds must be greater than 0, not {args.seconds}.")
    choice = parse(rest)
    if choice.runtime != "local":
        raise UserError("gdi bench measures the local runtime: no --runtime here.")
    if choice.run_dir is not None or choice.resume or any(word.partition("=")[0] == "--steps" for word in rest):
        raise UserError("gdi bench runs for --seconds and keeps nothing: no --steps, --run-dir or --resume here.")

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
    print(f"  reached    {result.fraction_of_ceiling:8.0%}")
    print(f"  reachable  {result.reachable_steps_per_second:8,.0f} steps/s   (the same and the environments, no more)")
    print(f"  reached    {result.fraction_of_reachable:8.0%}")
    shares = "   ".join(f"{name} {share:.0%}" for name, share in result.shares.items())
    print(f"  time goes to   {shares}")
    print(f"  bottleneck     {result.bottleneck}")
    return 0
