"""Stratified bootstrap intervals: each game's runs are resampled independently, with replacement.

This is the stratified bootstrap of Agarwal et al. 2021. Their library rliable is not used for two reasons. Its
resampling calls the global `np.random.choice` and ignores its `random_state`. `create_performance_profile` accepts no
`random_state`. The intervals are those of `scipy.stats.bootstrap` with one sample per game. That function copies the
scores for every replicate, and its import takes a second.

The interval says how much the number would change with other seeds on the same games. One run per game says nothing
about that, so agents without seeds get no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gdi.scores.counts import Counts
from gdi.scores.reference import Array

Statistic = Callable[..., Array]
Places = slice | NDArray[np.intp]

# At most so many replicates are drawn together, and fewer with many runs: their counts take up to 30 MB.
_BATCH = 250
_CELLS = 15_000_000
# With k times as many scores, a k²-th of the replicates, so that an interval takes seconds. It is narrow then.
MOST_SCORES = 200_000
FEWEST_REPLICATES = 200


@dataclass(frozen=True)
class Bootstrap:
    """Settings of the bootstrap; by default 95% percentile intervals of 2,000 replicates."""

    replicates: int = 2000
    confidence: float = 0.95
    seed: int = 0

    def replicates_for(self, *matrices: Array) -> int:
        """Return the number of replicates, which is smaller for more than `MOST_SCORES` scores."""
        scores = max(int(np.isfinite(matrix).sum()) for matrix in matrices)
        affordable = max(FEWEST_REPLICATES, self.replicates * MOST_SCORES**2 // max(scores, 1) ** 2)
        return min(self.replicates, affordable)


def has_seeds(scores: Array) -> bool:
    """Return whether any game has two or more runs, which resampling needs."""
    return bool((np.isfinite(scores).sum(axis=0) > 1).any())


def confidence_interval(
    statistic: Statistic, *matrices: Array, bootstrap: Bootstrap, batch: int | None = None
) -> tuple[Array, Array]:
    """Return the bounds of ``statistic(*matrices)``; each ``[runs, games]`` matrix is resampled by game.

    A replicate is ``statistic(*matrices, *counts)``, with counts ``[replicates, runs, games]`` of each matrix, as all
    of `gdi.scores.metrics` accept them. The statistic may return several numbers along a new last axis. `batch` is the
    number of replicates drawn together, by default `batch_size` of the largest matrix.
    """
    if not any(has_seeds(matrix) for matrix in matrices):
        raise ValueError("no game has two runs, so there is nothing to resample")
    distribution = np.concatenate(
        [statistic(*matrices, *counts) for counts in _replicates(matrices, bootstrap, batch or batch_size(*matrices))]
    )
    tail = (1 - bootstrap.confidence) / 2
    low, high = np.quantile(distribution, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


def batch_size(*matrices: Array) -> int:
    """Return how many replicates of these matrices are drawn together.

    The order of the draws depends on it, and so does every published interval.
    """
    return max(1, min(_BATCH, _CELLS // max(matrix.size for matrix in matrices)))


def _replicates(matrices: Sequence[Array], bootstrap: Bootstrap, batch: int) -> Iterator[list[Counts]]:
    """Yield the counts of each matrix, ``[replicates, runs, games]``, for as many batches as fit in memory."""
    rng = np.random.default_rng(bootstrap.seed)
    total = bootstrap.replicates_for(*matrices)
    rows = batch * max(1, batch_size(*matrices) // batch)
    places = [_places(matrix) for matrix in matrices]
    for start in range(0, total, rows):
        # The runs of a game are next to each other in memory. Two bytes suffice, because the runs of a game are drawn
        # once on average: the chance that one is drawn 32,768 times is below 10^-100,000.
        counts = [np.zeros((min(rows, total - start), *matrix.T.shape), np.int16) for matrix in matrices]
        for first in range(0, len(counts[0]), batch):
            for drawn, games in zip(counts, places, strict=True):
                _draw(drawn[first : first + batch], games, rng)
        yield [drawn.swapaxes(-1, -2) for drawn in counts]


def _places(matrix: Array) -> list[tuple[Places, int]]:
    """Return where each game has its runs, and how many. Runs without a gap are a slice, which is faster to fill."""
    found: list[tuple[Places, int]] = []
    for rows in map(np.flatnonzero, np.isfinite(matrix).T):
        gapless = rows.size > 0 and rows[-1] - rows[0] + 1 == rows.size
        found.append((slice(rows[0], rows[-1] + 1) if gapless else rows, rows.size))
    return found


def _draw(counts: Counts, games: Sequence[tuple[Places, int]], rng: Generator) -> None:
    """Draw the runs of each game with replacement, and write how often each was drawn, ``[replicates, games, runs]``.

    A game with a single run is the same in every replicate, so nothing is drawn for it.
    """
    for game, (runs, number) in enumerate(games):
        counts[:, game, runs] = _tally(rng.integers(0, number, (len(counts), number))) if number > 1 else 1


def _tally(draws: Counts) -> Counts:
    """Return how often each index was drawn in each row, ``[replicates, n]`` to ``[replicates, n]``."""
    draws += draws.shape[1] * np.arange(len(draws))[:, None]
    return np.bincount(draws.ravel(), minlength=draws.size).reshape(draws.shape)
