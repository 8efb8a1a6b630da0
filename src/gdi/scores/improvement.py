"""Probability of improvement of pairs of agents; pairs with scores in the same places share their replicates."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gdi.scores import metrics
from gdi.scores.agents import Agent, Mask
from gdi.scores.counts import Counts
from gdi.scores.intervals import Bootstrap, confidence_interval, has_seeds
from gdi.scores.reference import Array


@dataclass(frozen=True)
class Improvement:
    """The probability that a run of `agent` beats one of `other` on a game that both have."""

    agent: str
    other: str
    games: int
    value: float
    interval: tuple[float, float] | None


def improvements(
    mine: Sequence[Agent], others: Sequence[Agent], bootstrap: Bootstrap | None = None
) -> tuple[Improvement, ...]:
    """Compare each of `mine` with all other agents that have one of its games.

    An interval needs `bootstrap`, and a game with two runs of either agent.
    """
    pairs = [_Pair(a, b, a.reported & b.reported) for a in mine for b in (*mine, *others) if a is not b]
    pairs = [pair for pair in pairs if pair.shared.any()]
    intervals: dict[int, tuple[float, float]] = {}
    if bootstrap is not None and bootstrap.replicates:
        for group in _groups(pairs):
            intervals |= zip(map(id, group), _intervals(group, bootstrap), strict=True)
    return tuple(
        Improvement(pair.agent.name, pair.other.name, int(pair.shared.sum()), pair.value, intervals.get(id(pair)))
        for pair in pairs
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two agents and the games that both have."""

    agent: Agent
    other: Agent
    shared: Mask

    @property
    def matrices(self) -> tuple[Array, ...]:
        """Return the scores of both in the shared games, or the wins of the first if the other has one run per game.

        Each win is then counted once, and not in every replicate.
        """
        x, y = self.agent.scores[:, self.shared], self.other.scores[:, self.shared]
        return (x, y) if has_seeds(y) else (metrics.wins(x, metrics.game_means(y)),)

    @property
    def value(self) -> float:
        x, *y = self.matrices
        return float(metrics.probability_of_improvement(x, *y) if y else metrics.mean(x))


def _groups(pairs: Sequence[_Pair]) -> Iterator[list[_Pair]]:
    """Yield the pairs with seeds in groups that have scores in the same places, and so the same draws."""
    groups: dict[Hashable, list[_Pair]] = {}
    for pair in pairs:
        if any(map(has_seeds, pair.matrices)):
            key = tuple((matrix.shape, np.packbits(np.isfinite(matrix)).tobytes()) for matrix in pair.matrices)
            groups.setdefault(key, []).append(pair)
    yield from groups.values()


def _intervals(group: Sequence[_Pair], bootstrap: Bootstrap) -> list[tuple[float, float]]:
    """Return the interval of each pair of a group, all from the same replicates."""
    every = [pair.matrices for pair in group]

    def chances(x: Array, y: Array, *counts: Counts) -> Array:
        return np.stack([metrics.probability_of_improvement(m[0], m[1], *counts) for m in every], axis=-1)

    def mean_wins(_: Array, counts: Counts) -> Array:
        return metrics.mean(wins, counts[:, None])

    if len(every[0]) == 1:
        wins = np.stack([matrix for (matrix,) in every])
        low, high = confidence_interval(mean_wins, wins[0], bootstrap=bootstrap)
    else:
        low, high = confidence_interval(chances, *every[0], bootstrap=bootstrap)
    return list(zip(low.tolist(), high.tolist(), strict=True))
