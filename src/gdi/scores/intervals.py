"""Stratified bootstrap intervals: each game's runs are resampled independently, with replacement.

`scipy.stats.bootstrap` resamples every given sample independently. One sample per game is therefore the stratified
bootstrap of Agarwal et al. 2021. Their library rliable is not used for two reasons. Its resampling calls the global
`np.random.choice` and ignores its `random_state`. `create_performance_profile` accepts no `random_state`.

The interval says how much the number would change with other seeds on the same games. One run per game says nothing
about that, so agents without seeds get no interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gdi.scores.reference import Array

Statistic = Callable[..., Array]

# Replicates in memory at once: 250 times 5 runs, 57 games and 200 thresholds take well under 100 MB.
_BATCH = 250
# With many runs, fewer replicates, so that one copy of them has at most so many cells: some 120 MB.
_CELLS = 15_000_000


@dataclass(frozen=True)
class Bootstrap:
    """Settings of the bootstrap; by default 95% percentile intervals of 2,000 replicates."""

    replicates: int = 2000
    confidence: float = 0.95
    seed: int = 0


def has_seeds(scores: Array) -> bool:
    """Return whether any game has two or more runs, which resampling needs."""
    return bool((np.isfinite(scores).sum(axis=0) > 1).any())


def confidence_interval(statistic: Statistic, *matrices: Array, bootstrap: Bootstrap) -> tuple[Array, Array]:
    """Return the bounds of ``statistic(*matrices)``; each ``[runs, games]`` matrix is resampled by game.

    `statistic` must accept matrices with leading axes, ``[..., runs, games]``, as all of `gdi.scores.metrics` do. It
    may return several numbers along a new last axis. A game with a single run is constant over the replicates.
    """
    from scipy.stats import bootstrap as resample  # takes a second, and only intervals need it

    places: list[tuple[int, int]] = []
    samples: list[Array] = []
    for which, matrix in enumerate(matrices):
        for game in range(matrix.shape[1]):
            runs = matrix[np.isfinite(matrix[:, game]), game]
            if runs.size > 1:
                places.append((which, game))
                samples.append(runs)
    if not samples:
        raise ValueError("no game has two runs, so there is nothing to resample")

    def resampled(*draws: Array, axis: int) -> Array:
        batch = draws[0].shape[:-1]
        replicates = [np.broadcast_to(matrix, (*batch, *matrix.shape)).copy() for matrix in matrices]
        for (which, game), draw in zip(places, draws, strict=True):
            column = replicates[which][..., game]
            column[...] = np.nan
            column[..., : draw.shape[-1]] = draw
        value = np.asarray(statistic(*replicates))
        # SciPy expects several results along the first axis, and replicates last.
        return np.moveaxis(value, -1, 0) if value.ndim > len(batch) else value

    result = resample(
        samples,
        resampled,
        n_resamples=bootstrap.replicates,
        batch=max(1, min(_BATCH, _CELLS // max(matrix.size for matrix in matrices))),
        vectorized=True,
        axis=-1,
        confidence_level=bootstrap.confidence,
        method="percentile",
        rng=np.random.default_rng(bootstrap.seed),
    )
    return np.asarray(result.confidence_interval.low), np.asarray(result.confidence_interval.high)
