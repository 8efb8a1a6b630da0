"""The runs of the benchmark from the rows in its CSV files. ``gdi.scores.runs`` has their statistics.

To compare games, scores are divided by the DQN peer's mean final score in the same game (0 stays 0, DQN is 1). This
divisor is treated as exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.minatar_sweep.records import Row, run_of
from gdi.scores import runs as statistics
from gdi.scores.runs import Run
from gdi.types import Array

NORMALIZER, TARGET = "dqn", "ppo"


def make_runs(rows: Iterable[Row]) -> list[Run]:
    """Group rows of any agents into runs."""
    by_run: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        by_run.setdefault((row["agent"], *run_of(row)), []).append(row)
    runs = []
    for key, found in sorted(by_run.items()):
        found = sorted(found, key=lambda row: int(row["steps"]))
        columns = (np.array([float(row[name]) for row in found]) for name in ("steps", "mean", "seconds"))
        runs.append(Run(*key, int(found[0]["training_steps"]), *columns))
    return runs


def normalizer(runs: Iterable[Run], games: Sequence[str]) -> Array:
    """Return DQN's mean final score per game, ``[games]``; NaN if it has none above 0 to divide by."""
    return statistics.normalizer(runs, NORMALIZER, games)
