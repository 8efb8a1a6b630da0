"""The tables of docs/results/systems.md from the committed CSV files, as Markdown.

python -m benchmarks.system_tables [--results docs/results]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.minatar_sweep.agents import GAMES, env_id
from benchmarks.minatar_sweep.tables import NONE, number, section, table
from gdi.cli.parsing import OneLineParser, path_argument
from gdi.sweep.files import read_csv

STEPS = 1_000_000
# Training returns that are read off the curves of Young and Tian 2019 (30 runs), in the order of GAMES.
YOUNG_TIAN = {
    "dqn": ("DQN", dict(zip(GAMES, (6.5, 9.2, 47.8, 1.1, 32.6), strict=True))),
    "impala": ("AC(λ=0.8)", dict(zip(GAMES, (0.9, 9.8, 0.0, 1.0, 48.4), strict=True))),
}
# The peer of Stable-Baselines3 whose settings are most alike, and the name of its committed runs.
PEERS = {"dqn": ("DQN", "dqn"), "ppo": ("PPO", "ppo"), "impala": ("PPO", "ppo")}
SEARCHED = {"dqn": "ε", "ppo": "1/τ", "impala": "1/τ"}
ARMS = (("as published", ""), ("drawn uniformly", "uniform"), ("chosen by bandits", "bandit"))
MEASURES = (("evaluation", "mean"), ("greedy", "greedy_mean"), ("training", "training_mean"))
Row = Mapping[str, str]


def values(rows: Sequence[Row], preset: str, variant: str, game: str, measure: str) -> list[float]:
    """Return one measure of an agent's runs in a game, in the order of their seeds."""
    key = (env_id(game), preset, variant)
    found = [row for row in rows if (row["env"], row["preset"], row["variant"].removesuffix("-epsilon")) == key]
    return [float(row[measure]) for row in sorted(found, key=lambda row: int(row["seed"]))]


def peer_values(results: Path, name: str, game: str) -> list[float]:
    """Return the last evaluations of the committed runs of Stable-Baselines3."""
    rows = [row for row in read_csv(results / "minatar" / f"{name}.csv") if row["game"] == game]
    last: dict[str, Row] = {}
    for row in rows:
        last[row["seed"]] = max(last.get(row["seed"], row), row, key=lambda row: int(row["steps"]))
    return [float(row["mean"]) for row in last.values()]


def spread(found: Sequence[float]) -> str:
    """Return the mean, and the smallest and largest value of several runs."""
    if not found:
        return NONE
    return f"{number(float(np.mean(found)))} ({number(min(found))} to {number(max(found))})"


def system_table(results: Path, rows: Sequence[Row], preset: str) -> str:
    """Return the table of a system as published, beside its peer and the curves of others."""
    peer, peer_name = PEERS[preset]
    source, published = YOUNG_TIAN.get(preset, ("", {}))
    header = ["game", "evaluation, mean (min to max)", f"Stable-Baselines3's {peer}", "training, mean"]
    lines = []
    for game in GAMES:
        training = values(rows, preset, "", game, "training_mean")
        line = [
            game,
            spread(values(rows, preset, "", game, "mean")),
            spread(peer_values(results, peer_name, game)),
            number(float(np.mean(training))) if training else NONE,
        ]
        lines.append([*line, number(published[game])] if published else line)
    return table([*header, f"{source}, about"] if published else header, lines)


def exploration_rows(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield a row per system, game and way to explore for which there are runs."""
    for preset in PEERS:
        for game in GAMES:
            if not values(rows, preset, "bandit", game, "mean"):
                continue
            for label, variant in ARMS:
                cells = [spread(values(rows, preset, variant, game, measure)) for _, measure in MEASURES]
                yield [preset, game, f"{SEARCHED[preset]} {label}", *cells]


def pages(results: Path) -> Iterator[str]:
    """Yield the sections."""
    rows = [row for row in read_csv(results / "systems" / "runs.csv") if int(row["steps"]) == STEPS]
    for preset in PEERS:
        yield section(preset, system_table(results, rows, preset))
    header = ["system", "game", "exploration", *(label for label, _ in MEASURES)]
    yield section("exploration", table(header, exploration_rows(rows)))


def main(argv: Sequence[str]) -> int:
    parser = OneLineParser(prog="python -m benchmarks.system_tables", description="Print the tables of the systems.")
    parser.add_argument("--results", type=path_argument, default=Path("docs/results"), help="folder of the CSV files")
    print("\n\n".join(pages(parser.parse_args(argv).results)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
