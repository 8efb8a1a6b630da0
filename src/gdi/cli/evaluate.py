"""``gdi evaluate RUN_DIR``: play evaluation episodes with a trained agent."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gdi.cli.parsing import JSON_HELP, OneLineParser, path_argument, shorten, whole_number
from gdi.config import kind_of
from gdi.errors import DivergenceError, UserError
from gdi.types import Index

if TYPE_CHECKING:
    from gdi.agent import Agent
    from gdi.evaluation import Evaluation
    from gdi.evaluation.video import RecordedEpisode


DRAWS = 32  # of the λ of an episode, to tell their range
CHOSEN = {
    "fixed": "always the same",
    "uniform": "drawn for each episode",
    "schedule": "the schedule's setting for evaluation",
}


def parse_index(text: str) -> tuple[float, ...]:
    """Parse numbers such as ``100,300,0.5``."""
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is not a list of numbers such as 100,300,0.5") from None


def make_parser() -> OneLineParser:
    """Return the parser of the command's options."""
    parser = OneLineParser(prog="gdi evaluate", description="Play evaluation episodes with a trained agent.")
    parser.add_argument("run_dir", type=path_argument, metavar="RUN_DIR", help="folder of a training run")
    parser.add_argument("--episodes", type=whole_number, default=32, help="number of episodes to play (default: 32)")
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="seed for the environments and actions (default: 0)"
    )
    parser.add_argument(
        "--best", action="store_true", help="use the checkpoint with the best evaluation instead of the newest"
    )
    parser.add_argument(
        "--index",
        type=parse_index,
        metavar="X,Y,...",
        help="use this exploration setting (λ), one number per axis, instead of the controller's choice",
    )
    parser.add_argument(
        "--greedy", action="store_true", help="play the most probable action, instead of drawing one from the policy"
    )
    parser.add_argument("--trust", action="store_true", help="import the modules that the run folder names")
    parser.add_argument("--video", type=path_argument, help="also record an episode to this new mp4 file")
    parser.add_argument(
        "--strip",
        action="store_true",
        help="draw λ, the controller's distributions, entropy and value below the video",
    )
    parser.add_argument("--video-episodes", type=whole_number, help="number of episodes in the video (default: 1)")
    parser.add_argument(
        "--scores-anyway",
        action="store_true",
        help="show HNS, HWRNS and SABER also if the run changed its Atari protocol",
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    return parser


def check_arguments(args: argparse.Namespace) -> None:
    """Raise UserError if options contradict each other or are out of range."""
    if args.episodes < 1:
        raise UserError(f"--episodes must be greater than 0, not {args.episodes}.")
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")
    if args.index is not None and args.video is not None:
        raise UserError("--video always uses the controller's exploration setting (λ): drop --index.")
    if args.greedy and args.video is not None:
        raise UserError("--video plays as the run's evaluations do: drop --greedy.")
    if args.video_episodes is not None and args.video is None:
        raise UserError("--video-episodes needs a video: add --video.")
    if args.strip and args.video is None:
        raise UserError("--strip needs a video: add --video.")
    if args.video_episodes is not None and args.video_episodes < 1:
        raise UserError(f"--video-episodes must be greater than 0, not {args.video_episodes}.")


def run(argv: list[str]) -> int:
    """Play evaluation episodes with a trained agent, and print its scores."""
    args = make_parser().parse_args(argv)
    check_arguments(args)

    from gdi.api import load  # not at the top, because help and bad input must not wait for torch

    def warn(text: str) -> None:
        print(f"gdi: warning: {text}", file=sys.stderr)

    agent = load(args.run_dir, best=args.best, seed=args.seed, warn=warn, trust=args.trust)
    if args.video is not None:
        agent.check_recording(args.video)  # before the evaluation, which may take long
    try:
        result = agent.evaluate(args.episodes, args.seed, args.index, greedy=args.greedy or None)
    except DivergenceError:
        raise UserError(
            f"cannot evaluate {args.run_dir}: training diverged and its policy is NaN or infinite. Try --best."
        ) from None
    (print_json if args.json else print_text)(args, agent, result)
    return 0


def record_video(args: argparse.Namespace, agent: Agent) -> list[RecordedEpisode]:
    """Record the episodes of ``--video``."""
    return agent.record(args.video, args.video_episodes or 1, args.seed, strip=args.strip)


def print_json(args: argparse.Namespace, agent: Agent, result: Evaluation) -> None:
    """Print the evaluation as one JSON object, and record the video."""
    from gdi.evaluation import report_of

    printed = {**report_of(result, anyway=args.scores_anyway), "steps": agent.steps, "seed": args.seed}
    if args.index is not None:
        printed["index"] = agent.space.by_name(args.index)
    if args.video is not None:
        recorded = [episode.to_dict() for episode in record_video(args, agent)]
        printed["video"] = {"path": str(args.video), "episodes": recorded}
    print(json.dumps(printed))


def print_text(args: argparse.Namespace, agent: Agent, result: Evaluation) -> None:
    """Print the evaluation for a reader, and record the video."""
    from gdi.cli.outcome import cut_text
    from gdi.evaluation import WITHHELD, normalized_scores
    from gdi.report.console import format_normalized, format_score

    print(f"{result.env}, trained for {agent.steps:,} steps: {result.episodes} episodes, seed {args.seed}")
    print(
        f"  mean {result.mean:.2f} ± {result.std:.2f} (std)   median {result.median:.2f}   "
        f"min {format_score(result.min)}   max {format_score(result.max)}"
    )
    scores = normalized_scores(result, anyway=args.scores_anyway)
    if scores["hns"] is not None:
        print(f"  {format_normalized(scores)}   protocol {result.label}")
    elif result.changes:
        print(f"  protocol {result.label}")
        print(f"  {WITHHELD}")
    print(f"  episode length {result.length_mean_steps:.1f} steps on average")
    if result.cut_episodes:
        print(f"  {cut_text(result, agent.config)}")
    if args.video is not None:
        reached = [f"{episode.score:,.0f}" for episode in record_video(args, agent)]
        print(f"  video in {args.video}, score {', '.join(reached)}")
    print(f"  exploration setting: {setting_text(args, agent)}")


def setting_text(args: argparse.Namespace, agent: Agent) -> str:
    """Return the λ that was played. Where it is drawn for each episode, the text has the range of some draws.

    It resets the agent, so it comes after the episodes.
    """
    if args.index is not None:
        return f"{_in_one_line(agent, [args.index])} (--index)"
    if agent.config.evaluation.index:
        return f"{_in_one_line(agent, [agent.config.evaluation.index])} (the run's --evaluation.index)"
    draws = []
    for _ in range(DRAWS):
        agent.reset()
        draws.append(agent.index)
    chosen = CHOSEN.get(kind_of(agent.config.controller), "the controller's best")
    return f"{_in_one_line(agent, draws)} ({chosen})"


def _in_one_line(agent: Agent, draws: Sequence[Index]) -> str:
    """Return each component as ``1/τ1 22.5``, or as ``1/τ1 22.1 to 22.9`` if the draws differ."""
    parts = []
    for label, values in zip(agent.space.labels, zip(*draws, strict=True), strict=True):
        low, high = f"{min(values):.3g}", f"{max(values):.3g}"
        parts.append(f"{label} {low}" if low == high else f"{label} {low} to {high}")
    return ", ".join(parts)
