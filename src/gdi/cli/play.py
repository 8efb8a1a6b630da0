"""``gdi play GAME``: record one episode of a random agent, to show what a game looks like and what chance scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gdi.cli.parsing import JSON_HELP, OneLineParser, whole_number
from gdi.envs.protocols import PROTOCOLS
from gdi.errors import UserError, did_you_mean
from gdi.report.console import format_normalized
from gdi.scores.games import canonical_game
from gdi.scores.metrics import normalize
from gdi.scores.reference import load_reference
from gdi.types import Array


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

    def act(self, observation: Array, reward: float = 0.0) -> int:
        """Return a random action."""
        return int(self._rng.integers(self._num_actions))


def run(argv: list[str]) -> int:
    """Record one episode of a random agent, and print its score."""
    parser = OneLineParser(prog="gdi play", description="Record one episode of an Atari game played at random.")
    parser.add_argument("game", help="one of the 57 Atari games in any usual spelling: pong, ms_pacman, ALE/Pong-v5")
    parser.add_argument("--video", type=Path, help="mp4 file to write, which must be new (default: GAME-seedN.mp4)")
    parser.add_argument("--seed", type=whole_number, default=0, help="seed for the game and the actions (default: 0)")
    parser.add_argument(
        "--protocol", default="paper", help=f"rules of the game: {', '.join(PROTOCOLS)} (default: paper)"
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    args = parser.parse_args(argv)
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")
    game = canonical_game(args.game)
    if args.protocol not in PROTOCOLS:
        near = did_you_mean(args.protocol, PROTOCOLS)
        raise UserError(f"unknown --protocol {args.protocol!r}.{near} Protocols: {', '.join(PROTOCOLS)}.")
    protocol = PROTOCOLS[args.protocol]
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
