"""Comparison of agents by their runs: final scores, their intervals, who is ahead, and how fast.

The final score of a run is the mean of its last evaluation, at the end of training, not the best one. Intervals are
those of ``gdi.scores.intervals``: 95%, from a bootstrap that resamples the seeds of every game separately.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gdi.scores import metrics
from gdi.scores.counts import Counts
from gdi.scores.intervals import Bootstrap, Statistic, confidence_interval, has_seeds
from gdi.types import Array

BOOTSTRAP = Bootstrap()


@dataclass(frozen=True)
class Run:
    """One training run, with its evaluations in the order of their steps."""

    agent: str
    game: str
    seed: int
    training_steps: int
    steps: Array
    scores: Array
    seconds: Array

    @property
    def final(self) -> float:
        return float(self.scores[-1])


def score_matrix(runs: Iterable[Run], agent: str, games: Sequence[str]) -> Array:
    """Return final scores ``[runs, games]`` for ``gdi.scores.metrics``, with NaN for missing runs."""
    columns = [[run.final for run in runs if (run.agent, run.game) == (agent, game)] for game in games]
    matrix = np.full((max(1, *map(len, columns)), len(games)), np.nan)
    for i, column in enumerate(columns):
        matrix[: len(column), i] = column
    return matrix


def normalizer(runs: Iterable[Run], agent: str, games: Sequence[str]) -> Array:
    """Return an agent's mean final score per game, ``[games]``; NaN if it has none above 0 to divide by."""
    means = metrics.game_means(score_matrix(runs, agent, games))
    return np.where(means > 0, means, np.nan)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, which is missing if no game has two runs. NaN means "not measured"."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def has_interval(self) -> bool:
        return math.isfinite(self.low)

    def text(self, digits: int = 2) -> str:
        """Format the estimate: ``1.25 [1.10, 1.40]``."""
        if math.isnan(self.value):
            return "–"
        bounds = f" [{self.low:.{digits}f}, {self.high:.{digits}f}]" if self.has_interval else ""
        return f"{self.value:.{digits}f}{bounds}"


def estimate(statistic: Statistic, *matrices: Array, bootstrap: Bootstrap = BOOTSTRAP) -> Estimate:
    """Return a statistic of score matrices with its bootstrap interval."""
    if any(not np.isfinite(matrix).any() for matrix in matrices):
        return Estimate(math.nan)
    value = float(statistic(*matrices))
    if not any(has_seeds(matrix) for matrix in matrices):
        return Estimate(value)
    low, high = confidence_interval(statistic, *matrices, bootstrap=bootstrap)
    return Estimate(value, float(low), float(high))


def shared_games(*matrices: Array) -> Array:
    """Return the games of which all matrices have a run, ``[games]``."""
    return np.asarray(np.all([np.isfinite(matrix).any(axis=0) for matrix in matrices], axis=0))


@dataclass(frozen=True)
class Comparison:
    """The comparison of two agents: the probability that a run of ``better`` beats one of ``worse``.

    The game is random.
    """

    better: str
    worse: str
    probability: Estimate
    games: int
    ahead: int  # number of games in which the first has the higher mean
    verdict: str
    because: str


def compare(
    runs: Sequence[Run], better: str, worse: str, games: Sequence[str], bootstrap: Bootstrap = BOOTSTRAP
) -> Comparison:
    """Compare two agents: ``held`` if the whole interval is above 0.5, ``not held`` if it is below.

    Otherwise the verdict is ``undecided``. A game with one run has no known spread, so it is undecided as well.
    """
    x, y = (score_matrix(runs, agent, games) for agent in (better, worse))
    shared = shared_games(x, y)
    if not shared.any():
        return Comparison(better, worse, Estimate(math.nan), 0, 0, "not measured", "the two have no game in common")
    x, y = x[:, shared], y[:, shared]
    probability = estimate(metrics.probability_of_improvement, x, y, bootstrap=bootstrap)
    if min(np.isfinite(x).sum(axis=0).min(), np.isfinite(y).sum(axis=0).min()) < 2:
        verdict, because = "undecided", "a game with a single run has no interval"
    elif probability.low > 0.5:
        verdict, because = "held", "the whole interval is above 0.5"
    elif probability.high < 0.5:
        verdict, because = "not held", "the whole interval is below 0.5: the opposite holds"
    else:
        verdict, because = "undecided", "the interval includes 0.5"
    ahead = int((metrics.game_means(x) > metrics.game_means(y)).sum())
    return Comparison(better, worse, probability, int(shared.sum()), ahead, verdict, because)


@dataclass(frozen=True)
class HeadToHead:
    """The difference of two agents' mean final scores in one game, with a verdict."""

    difference: Estimate
    verdict: str  # ahead, tied, behind, undecided or not measured


def head_to_head(
    runs: Sequence[Run], agent: str, other: str, game: str, bootstrap: Bootstrap = BOOTSTRAP
) -> HeadToHead:
    """Compare two agents in one game: tied if the interval of the difference includes 0.

    The verdict is undecided if either has a single run, and so no spread.
    """
    x, y = (score_matrix(runs, name, [game]) for name in (agent, other))

    def difference(a: Array, b: Array, counts: Counts | None = None, other_counts: Counts | None = None) -> Array:
        return metrics.mean(a, counts) - metrics.mean(b, other_counts)

    found = estimate(difference, x, y, bootstrap=bootstrap)
    if math.isnan(found.value):
        return HeadToHead(found, "not measured")
    if not (has_seeds(x) and has_seeds(y)):
        return HeadToHead(found, "undecided")
    return HeadToHead(found, "ahead" if found.low > 0.0 else "behind" if found.high < 0.0 else "tied")


def first_reach(run: Run, target: float) -> tuple[float, float]:
    """Return steps and seconds of the first evaluation that reaches the target; infinite if none does."""
    hits = np.flatnonzero(run.scores >= target)
    if not hits.size:
        return math.inf, math.inf
    return float(run.steps[hits[0]]), float(run.seconds[hits[0]])


@dataclass(frozen=True)
class TimeToTarget:
    """The median time of an agent's runs of a game to a score; infinite if half of them never reach it."""

    steps: float
    seconds: float
    reached: int
    runs: int


def time_to_target(runs: Iterable[Run], agent: str, game: str, target: float) -> TimeToTarget | None:
    """Return the median time to the target, or None without a run."""
    found = [first_reach(run, target) for run in runs if (run.agent, run.game) == (agent, game)]
    if not found:
        return None
    # Take the upper of the two middle values, because their average may be infinite.
    steps, seconds = (sorted(column)[len(column) // 2] for column in zip(*found, strict=True))
    return TimeToTarget(steps, seconds, sum(math.isfinite(steps) for steps, _ in found), len(found))


@dataclass(frozen=True)
class Curve:
    """The mean over seeds of each evaluation, with a band if there are two or more seeds."""

    steps: Array
    mean: Array
    band: tuple[Array, Array] | None


def curve(runs: Iterable[Run], agent: str, game: str, bootstrap: Bootstrap = BOOTSTRAP) -> Curve | None:
    """Return the learning curve, or None without a run.

    Runs of an agent are evaluated at the same times, up to the few steps of a window.
    """
    found = [run for run in runs if (run.agent, run.game) == (agent, game)]
    if not found:
        return None
    points = min(len(run.steps) for run in found)
    scores = np.array([run.scores[:points] for run in found])
    steps = np.mean([run.steps[:points] for run in found], axis=0)
    band = confidence_interval(metrics.game_means, scores, bootstrap=bootstrap) if len(found) > 1 else None
    return Curve(steps, scores.mean(axis=0), band)
