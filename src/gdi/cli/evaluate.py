"""``gdi evaluate RUN_DIR``: play evaluation episodes with a trained agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gdi.cli.parsing import OneLineParser, whole_number
from gdi.errors import UserError


def run(argv: list[str]) -> int:
    parser = OneLineParser(prog="gdi evaluate", description="Play evaluation episodes with a trained agent.")
    parser.add_argument("run_dir", type=Path, help="folder of a training run")
    parser.add_argument("--episodes", type=whole_number, default=32, help="whole episodes to play (default: 32)")
    parser.add_argument("--seed", type=whole_number, default=0, help="of environments and actions (default: 0)")
    parser.add_argument("--best", action="store_true", help="the checkpoint with the best evaluation, not the newest")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    args = parser.parse_args(argv)
    if args.episodes < 1:
        raise UserError(f"--episodes must be greater than 0, not {args.episodes}.")
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")

    from gdi.api import load

    agent = load(args.run_dir, best=args.best, warn=lambda text: print(f"gdi: warning: {text}", file=sys.stderr))
    result = agent.evaluate(args.episodes, args.seed)
    if args.json:
        print(json.dumps({**result.to_dict(), "steps": agent.steps, "seed": args.seed}))
        return 0
    print(f"{result.env}, trained for {agent.steps:,} steps: {result.episodes} episodes, seed {args.seed}")
    print(
        f"  mean {result.mean:.2f} ± {result.std:.2f} (std)   median {result.median:.2f}   "
        f"min {result.min:.4g}   max {result.max:.4g}"
    )
    print(f"  episode length {result.length_mean_steps:.1f} steps on average")
    if result.cut_episodes:
        print(f"  {result.cut_episodes} episodes were cut because they did not end")
    return 0
