"""``gdi play GAME``: one episode of a random agent, as a video: what a game looks like, and what no skill scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gdi.cli.parsing import OneLineParser, whole_number
from gdi.envs.names import atari_id
from gdi.envs.protocols import PROTOCOLS
from gdi.errors import UserError, nearest
from gdi.report.console import normalised_text
from gdi.scores.games import canonical_game
from gdi.scores.metrics import normalise
from gdi.scores.reference import load_reference
from gdi.types import Array


class RandomPlayer:
    """Every action equally likely."""

    named_index = None

    def caption(self) -> str:
        return "random agent"

    def __init__(self, num_actions: int, rng: np.random.Generator) -> None:
        self._num_actions = num_actions
        self._rng = rng

    def reset(self) -> None: ...

    def act(self, observation: Array, reward: float = 0.0) -> int:
        return int(self._rng.integers(self._num_actions))


def run(argv: list[str]) -> int:
    parser = OneLineParser(prog="gdi play", description="Play one episode of an Atari game at random, as a video.")
    parser.add_argument("game", help="one of the 57 Atari games in any usual spelling: pong, ms_pacman, ALE/Pong-v5")
    parser.add_argument("--video", type=Path, help="mp4 file to write (default: GAME-seedS.mp4); never overwrites")
    parser.add_argument("--seed", type=whole_number, default=0, help="of the game and the actions (default: 0)")
    parser.add_argument("--protocol", default="paper", help=f"one of {', '.join(PROTOCOLS)} (default: paper)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    args = parser.parse_args(argv)
    if args.seed < 0:
        raise UserError(f"--seed must be 0 or more, not {args.seed}.")
    game = canonical_game(args.game)
    if args.protocol not in PROTOCOLS:
        near = nearest(args.protocol, PROTOCOLS)
        raise UserError(f"--protocol {args.protocol!r} is none.{near} Protocols: {', '.join(PROTOCOLS)}.")
    protocol = PROTOCOLS[args.protocol]
    path = args.video or Path(f"{game}-seed{args.seed}.mp4")

    from gdi.envs.atari_screen import seeded_screen
    from gdi.evaluation.video import FRAMES_PER_SECOND, check_recording, record

    check_recording(atari_id(game), path)
    screen_seed, action_seed = (int(seed) for seed in np.random.SeedSequence(args.seed).generate_state(2))
    screen = seeded_screen(game, protocol, screen_seed)
    (episode,) = record(path, screen, RandomPlayer(screen.num_actions, np.random.default_rng(action_seed)))
    against = normalise(game, episode.score, load_reference("paper"))
    if args.json:
        told = {key: value for key, value in episode.to_dict().items() if key != "index"}
        named = {"game": game, "protocol": protocol.name, "seed": args.seed}
        print(json.dumps({**named, **told, **against, "video": str(path)}))
        return 0
    print(f"{game}, random agent, protocol {protocol.name}, seed {args.seed}: score {episode.score:,.0f}")
    print(f"  {normalised_text(against)}")
    cut = ", then it was cut" if episode.truncated else ""
    print(f"  {episode.length_steps:,} steps, {episode.length_frames / FRAMES_PER_SECOND:.1f} s of play{cut}")
    print(f"  video in {path}")
    return 0
