"""Which values of ε the controllers preferred, run by run: opposite preferences cancel in a mean over runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.minatar_sweep.agents import AGENTS, GAMES
from benchmarks.minatar_sweep.records import Row, run_of
from benchmarks.minatar_sweep.tables import label, section, table

SETTLED_STEPS = 200_000  # before that, the controllers have seen few episodes
LASTING = 0.75  # share of a run's log lines
MIDDLE = 0.5
Lines = list[tuple[float, float]]  # the mean proposal of ε, and the probability of its likeliest block


def epsilon(rows: Sequence[Row]) -> str:
    """Return a table of the proposals of ε per run, for the agents whose controller chooses it."""
    lines = [line for agent in AGENTS for game in GAMES for line in _line(rows, agent, game)]
    title = "Which ε the controllers preferred, run by run"
    if not lines:
        return section(title, "No agent has runs whose controller chooses ε.")
    told = (
        f"From the log lines after {SETTLED_STEPS:,} steps. Proposed ε is the mean of a run's proposals, one number "
        f"per run in the order of seeds. A run keeps a small or a large ε if at least {LASTING:.0%} of its lines lie "
        f"on the same side of {MIDDLE:g}. Range is the distance between the smallest and the largest line of a run. "
        "Top is the probability of the likeliest of ten blocks, 0.1 without any preference. Both are means over runs."
    )
    header = ["agent", "game", "proposed ε", "keep a small ε", "keep a large ε", "change", "range", "top"]
    return section(title, told, table(header, lines))


def _line(rows: Sequence[Row], agent: str, game: str) -> Iterator[list[str]]:
    """Yield the line of an agent and game, if its controller chose ε there."""
    runs = [lines for lines in lines_of_runs(rows, agent, game).values() if lines]
    if not runs:
        return
    sides = [preference(lines) for lines in runs]
    proposed = [[mean for mean, _ in lines] for lines in runs]
    yield [
        label(agent),
        game,
        ", ".join(f"{np.mean(one):.2f}" for one in proposed),
        *(f"{sides.count(side)} of {len(sides)}" for side in ("small", "large", "neither")),
        f"{np.mean([max(one) - min(one) for one in proposed]):.2f}",
        f"{np.mean([top for lines in runs for _, top in lines]):.2f}",
    ]


def lines_of_runs(rows: Sequence[Row], agent: str, game: str) -> dict[tuple[str, int], Lines]:
    """Return the log lines of each run in the order of seeds; none where ε was not searched."""
    found: dict[tuple[str, int], Lines] = {}
    for row in sorted(rows, key=lambda row: (int(row["seed"]), int(row["steps"]))):
        top = row["top_probability_epsilon"]
        if (row["agent"], row["game"]) == (agent, game) and int(row["steps"]) >= SETTLED_STEPS and top:
            found.setdefault(run_of(row), []).append((float(row["mean_epsilon"]), float(top)))
    return found


def preference(lines: Lines) -> str:
    """Return on which side of the middle a run's proposals stayed: small, large or neither."""
    below = np.mean([mean < MIDDLE for mean, _ in lines])
    return "small" if below >= LASTING else "large" if below <= 1 - LASTING else "neither"
