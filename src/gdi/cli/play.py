"""``gdi play RUN``: watch a trained agent play. ``gdi play GAME``: record what chance scores in an Atari game."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gdi.cli.parsing import JSON_HELP, OneLineParser, path_argument, shorten, whole_number
from gdi.envs.base import Beside
from gdi.envs.protocols import PROTOCOLS
from gdi.errors import UserError, did_you_mean
from gdi.report.console import format_normalized
from gdi.scores.games import canonical_game, find_game, suggest
from gdi.scores.metrics import normalize
from gdi.scores.reference import load_reference
from gdi.seeds import child_seed
from gdi.types import Array

if TYPE_CHECKING:
    from gdi.agent import Agent
    from gdi.evaluation.video import RecordedEpisode

DESCRIPTION = """\
Watch a trained agent play in a window, or record a random agent in an Atari game.

  gdi play runs/cartpole                       # in a window; Esc closes it
  gdi play runs/cartpole --video play.mp4      # in a file instead
  gdi play pong                                # a random agent, in pong-seed0.mp4"""


class RandomPlayer:
    """Player that draws every action with equal probability."""

    named_index = None

    def caption(self) -> str:
        """Return the caption of the video."""
        return "random agent"

    def __init__(self, num_actions: int, rng: np.random.Generator) -> None:
        self._num_actions = num_actions
        self._rng = rng

    def reset(self) -> None:
        """Do nothing: the player has no memory."""

    def choose(self, obs: Array, beside: Beside, reward: float = 0.0) -> int:
        """Return a random action."""
        return int(self._rng.integers(self._num_actions))


def make_parser() -> OneLineParser:
    *most, last = PROTOCOLS
    rules = f"{', '.join(most)} or {last}"
    parser = OneLineParser(
        prog="gdi play", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", metavar="RUN_OR_GAME", help="folder of a training run, or one of the 57 Atari games")
    parser.add_argument(
        "--video", type=path_argument, help="mp4 file to write, which must be new (default for a game: GAME-seedN.mp4)"
    )
    parser.add_argument("--seed", type=whole_number, default=0, help="seed for the game and the actions (default: 0)")
    parser.add_argument("--episodes", type=whole_number, help="of a run: number of episodes to play (default: 1)")
    parser.add_argument("--best", action="store_true", help="of a run: use the checkpoint with the best evaluation")
    parser.add_argument("--trust", action="store_true", help="import the modules that the run folder names")
    parser.add_argument("--protocol", help=f"of a game: its rules ({rules}; default: paper)")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    return parser


def run(argv: list[str]) -> int:
    """Play episodes of a run in a window or a video, or one episode of a random agent in a video."""
    args = make_parser().parse_args(argv)
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")
    if os.path.isdir(args.what):  # False for a name that is too long, where Path.is_dir raises
        return play_run(args)
    for option, value in (("--episodes", args.episodes), ("--best", args.best), ("--trust", args.trust)):
        if value:
            raise UserError(f"{option} needs a run folder, and {args.what} is none: drop it.")
    return play_game(args)


def play_run(args: argparse.Namespace) -> int:
    """Play episodes of a trained agent, and print their scores."""
    episodes = 1 if args.episodes is None else args.episodes
    if episodes < 1:
        raise UserError(f"--episodes must be greater than 0, not {episodes}.")
    if args.protocol is not None:
        raise UserError("--protocol is that of the run: drop it.")

    from gdi.api import load
    from gdi.evaluation.window import check_display

    if args.video is None:
        check_display()  # before the agent is loaded, which takes seconds
    agent = load(args.what, best=args.best, seed=args.seed, warn=_warn, trust=args.trust)
    if args.video is None:
        played = _show(agent, args.what, episodes, args.seed)
    else:
        played = agent.record(args.video, episodes, args.seed)
    if args.json:
        shown: dict[str, Any] = {"env": agent.config.env.id, "steps": agent.steps, "seed": args.seed}
        video = {} if args.video is None else {"video": str(args.video)}
        print(json.dumps({**shown, "episodes": [episode.to_dict() for episode in played], **video}))
        return 0
    for episode in played:
        print(f"score {episode.score:g} after {episode.length_steps:,} steps")
    if args.video is not None:
        print(f"  video in {args.video}")
    return 0


def _warn(text: str) -> None:
    print(f"gdi: warning: {text}", file=sys.stderr)


def _show(agent: Agent, title: str, episodes: int, seed: int) -> list[RecordedEpisode]:
    """Play in a window until the user closes it. Return the whole episodes."""
    from gdi.envs.screen import make_screen
    from gdi.evaluation.video import play_episode, video_size
    from gdi.evaluation.window import Window, WindowClosedError

    screen = make_screen(agent.config.env, child_seed(seed, "video"))
    played: list[RecordedEpisode] = []
    try:
        with Window(f"gdi play {title}", video_size(screen.image_shape), screen.frames_per_second) as window:
            for _ in range(episodes):
                played.append(play_episode(window.show, screen, agent))
    except WindowClosedError:
        pass
    finally:
        screen.close()
    return played


def play_game(args: argparse.Namespace) -> int:
    """Record one episode of a random agent, and print its score."""
    if find_game(args.what) is None:
        raise UserError(
            f"{shorten(args.what)} is neither a run folder nor one of the 57 Atari games.{suggest(args.what)} "
            "`gdi envs` lists the games."
        )
    game = canonical_game(args.what)
    name = args.protocol or "paper"
    if name not in PROTOCOLS:
        near = did_you_mean(name, PROTOCOLS)
        raise UserError(f"unknown --protocol {name!r}.{near} Protocols: {', '.join(PROTOCOLS)}.")
    protocol = PROTOCOLS[name]
    path = args.video or Path(f"{game}-seed{args.seed}.mp4")

    from gdi.envs.atari_screen import seeded_screen
    from gdi.evaluation.video import check_path, record

    check_path(path)
    screen_seed, action_seed = (int(seed) for seed in np.random.SeedSequence(args.seed).generate_state(2))
    screen = seeded_screen(game, protocol, screen_seed)
    (episode,) = record(path, screen, RandomPlayer(screen.num_actions, np.random.default_rng(action_seed)))
    against = normalize(game, episode.score, load_reference("paper"))
    if args.json:
        recorded = {key: value for key, value in episode.to_dict().items() if key != "index"}
        named = {"game": game, "protocol": protocol.name, "seed": args.seed}
        print(json.dumps({**named, **recorded, **against, "video": str(path)}))
        return 0
    print(f"{game}, random agent, protocol {protocol.name}, seed {args.seed}: score {episode.score:,.0f}")
    print(f"  {format_normalized(against)}")
    cut = ", then truncated" if episode.truncated else ""
    print(f"  {episode.length_steps:,} steps, {episode.length_frames / screen.frames_per_second:.1f} s of play{cut}")
    print(f"  video in {path}")
    return 0
