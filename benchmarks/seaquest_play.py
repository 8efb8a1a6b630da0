"""What agents do in MinAtar's Seaquest: play finished runs, and write one row per episode.

    python -m benchmarks.seaquest_play runs/seaquest [--episodes 32] [--out FILE.csv]

Each run below the folder plays as in its evaluations, and again with the most probable action at each step. A row has
the surfacings (the submarine reaches the surface and its oxygen is refilled), the divers picked up, and how the episode
ended: the oxygen ran out, the submarine surfaced without a diver, something hit it, or the limit of steps was reached.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_agents import AGENTS
from gdi.agent import Agent
from gdi.cli.parsing import OneLineParser, path_argument
from gdi.config import validate
from gdi.envs.minatar import MinAtarEnv
from gdi.errors import UserError
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.folder import CHECKPOINTS, CONFIG, read_config
from gdi.seeds import child_seed
from gdi.sweep.files import write_whole
from gdi.types import Array

PROG = "python -m benchmarks.seaquest_play"
SEAQUEST = "MinAtar/Seaquest-v0"
FULL_LOAD = 6  # divers; surfacing with all of them is rewarded
KINDS = [type(preset.at("minatar").learner) for preset in AGENTS.values()]


@dataclass(frozen=True)
class Episode:
    """What happened in one episode."""

    score: float
    steps: int
    surfacings: int
    full_surfacings: int  # those of them with six divers
    divers: int  # picked up
    oxygen: int  # before the last step, of 200
    end: str  # oxygen, no-diver, hit or limit


def play(env: MinAtarEnv, observation: Array, act: Callable[[Array], int]) -> Episode:
    """Play an episode from its first observation, [1, ...], in an environment with one copy of the game."""
    game: Any = env._games[0].env
    score, steps, surfacings, full, divers = 0.0, 0, 0, 0, 0
    while True:
        oxygen, aboard = int(game.oxygen), int(game.diver_count)
        step = env.step(np.array([act(observation)]))
        observation, score, steps = step.obs, score + float(step.reward[0]), steps + 1
        if game.oxygen > oxygen:  # only surfacing with a diver refills it
            surfacings += 1
            full += aboard == FULL_LOAD
        else:
            divers += max(0, int(game.diver_count) - aboard)
        if step.terminated[0] or step.truncated[0]:
            end = how_it_ended(game, oxygen) if step.terminated[0] else "limit"
            return Episode(score, steps, surfacings, full, divers, oxygen, end)


def how_it_ended(game: Any, oxygen: int) -> str:
    """Return why a game is over; ``oxygen`` is what was left before the last step."""
    if oxygen <= 0:
        return "oxygen"
    # At the surface, ``surface`` is false only if there was no diver to hand over.
    return "no-diver" if game.sub_y == 0 and not game.surface else "hit"


def load_agent(folder: Path, *, greedy: bool, seed: int) -> Agent:
    """Return the agent of a run's newest checkpoint."""
    config = validate(read_config(folder, classes=KINDS))
    if config.env.id != SEAQUEST:
        raise UserError(f"{folder} is a run of {config.env.id}, not of {SEAQUEST}.")
    state = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, print).newest(replay=False)
    if state is None:
        raise UserError(f"{folder} has no checkpoint yet: let it train a little longer.")
    return Agent(replace(config, evaluation=replace(config.evaluation, greedy=greedy)), state, seed)


def play_run(folder: Path, episodes: int, seed: int) -> list[dict[str, Any]]:
    """Play a run both ways; return a row per episode."""
    rows = []
    for mode in ("evaluation", "greedy"):
        agent, env = load_agent(folder, greedy=mode == "greedy", seed=seed), MinAtarEnv(SEAQUEST, 1)
        for number in range(episodes):
            agent.reset()
            found = play(env, env.reset(child_seed(seed, "seaquest", number)), lambda obs, a=agent: a.act(obs[0]))
            names = {"agent": folder.parent.name, "run": folder.name, "trained_steps": agent.steps}
            rows.append({**names, "mode": mode, "episode": number, **asdict(found)})
    return rows


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def summary(rows: list[dict[str, Any]]) -> Iterable[str]:
    """Yield a line of means per run and mode."""
    for key in dict.fromkeys((row["agent"], row["run"], row["mode"]) for row in rows):
        own = [row for row in rows if (row["agent"], row["run"], row["mode"]) == key]
        means = {f.name: np.mean([row[f.name] for row in own]) for f in fields(Episode) if f.name != "end"}
        ends = {end: sum(row["end"] == end for row in own) for end in ("oxygen", "no-diver", "hit", "limit")}
        yield "  ".join([*key, *(f"{name} {mean:.2f}" for name, mean in means.items()), str(ends)])


def main(argv: list[str] | None = None) -> int:
    parser = OneLineParser(prog=PROG, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=path_argument, help="a run folder, or a folder with run folders in it")
    parser.add_argument("--episodes", type=int, default=32, help="episodes per run and mode (default: 32)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the episodes (default: 0)")
    parser.add_argument("--out", type=path_argument, help="the CSV file (default: FOLDER/episodes-played.csv)")
    try:
        args = parser.parse_args(argv)
        runs = sorted(path.parent for path in args.folder.rglob(CONFIG))
        if not runs:
            raise UserError(f"{args.folder} has no run folder in it: give the folder of a run or a sweep.")
        if args.episodes < 1:
            raise UserError(f"--episodes must be greater than 0, not {args.episodes}.")
        rows: list[dict[str, Any]] = []
        for run in runs:
            rows += (found := play_run(run, args.episodes, args.seed))
            print(*summary(found), sep="\n", flush=True)
            write_csv(args.out or args.folder / "episodes-played.csv", rows)
    except UserError as error:
        print(f"{PROG}: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
