"""``gdi evaluate RUN_DIR``: play evaluation episodes with a trained agent."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gdi.cli.parsing import OneLineParser, whole_number
from gdi.errors import Diverged, UserError


def numbers(text: str) -> tuple[float, ...]:
    """``100,300,0.5``."""
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not numbers such as 100,300,0.5") from None


def run(argv: list[str]) -> int:
    parser = OneLineParser(prog="gdi evaluate", description="Play evaluation episodes with a trained agent.")
    parser.add_argument("run_dir", type=Path, help="folder of a training run")
    parser.add_argument("--episodes", type=whole_number, default=32, help="whole episodes to play (default: 32)")
    parser.add_argument("--seed", type=whole_number, default=0, help="of environments and actions (default: 0)")
    parser.add_argument("--best", action="store_true", help="the checkpoint with the best evaluation, not the newest")
    parser.add_argument(
        "--index",
        type=numbers,
        metavar="X,Y,...",
        help="play with this λ, not the controller's: its numbers in the order of the index space",
    )
    parser.add_argument("--trust", action="store_true", help="import the modules that the run folder names")
    parser.add_argument("--video", type=Path, help="Atari only: also record an episode, as this mp4 file (must be new)")
    parser.add_argument("--video-episodes", type=whole_number, help="episodes in the video (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    args = parser.parse_args(argv)
    if args.episodes < 1:
        raise UserError(f"--episodes must be greater than 0, not {args.episodes}.")
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")
    if args.index is not None and args.video is not None:
        raise UserError("--video shows the controller's λ: no --index with it.")
    if args.video_episodes is not None and args.video is None:
        raise UserError("--video-episodes needs --video.")
    video_episodes = 1 if args.video_episodes is None else args.video_episodes
    if video_episodes < 1:
        raise UserError(f"--video-episodes must be greater than 0, not {video_episodes}.")

    from gdi.api import load
    from gdi.evaluation import normalized_scores, report_of
    from gdi.report.console import normalised_text

    def warn(text: str) -> None:
        print(f"gdi: warning: {text}", file=sys.stderr)

    agent = load(args.run_dir, best=args.best, seed=args.seed, warn=warn, trust=args.trust)
    if args.video is not None:
        agent.check_recording(args.video)  # before the evaluation, which may take long
    try:
        result = agent.evaluate(args.episodes, args.seed, args.index)
    except Diverged:
        raise UserError(f"the policy of {args.run_dir} is not finite: its training diverged. Try --best.") from None
    if args.json:
        told = {**report_of(result), "steps": agent.steps, "seed": args.seed}
        if args.index is not None:
            told["index"] = agent.space.by_name(args.index)
        if args.video is not None:
            recorded = [episode.to_dict() for episode in agent.record(args.video, video_episodes, args.seed)]
            told["video"] = {"path": str(args.video), "episodes": recorded}
        print(json.dumps(told))
        return 0
    print(f"{result.env}, trained for {agent.steps:,} steps: {result.episodes} episodes, seed {args.seed}")
    print(
        f"  mean {result.mean:.2f} ± {result.std:.2f} (std)   median {result.median:.2f}   "
        f"min {result.min:.4g}   max {result.max:.4g}"
    )
    scores = normalized_scores(result)
    if scores["hns"] is not None:
        print(f"  {normalised_text(scores)}   protocol {result.protocol}")
    print(f"  episode length {result.length_mean_steps:.1f} steps on average")
    if result.cut_episodes:
        print(f"  {result.cut_episodes} episodes were cut because they did not end")
    if args.video is not None:
        reached = [f"{episode.score:,.0f}" for episode in agent.record(args.video, video_episodes, args.seed)]
        print(f"  video in {args.video}, score {', '.join(reached)}")
    return 0
