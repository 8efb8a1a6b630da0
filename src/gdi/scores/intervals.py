"""Stratified bootstrap confidence intervals: each game's runs are resampled with replacement, independently.

`scipy.stats.bootstrap` does the work: it resamples every sample it is given independently, so one sample per game *is*
the stratified bootstrap of Agarwal et al. 2021. Their library rliable is not used for it: its resampling calls the
global `np.random.choice` and so ignores the `random_state` it accepts, and `create_performance_profile` takes none.

The interval says how much the number would move with other seeds on the same games. One run per game says nothing
about that, so agents without seeds get no interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gdi.scores.reference import Array

Statistic = Callable[..., Array]

# Replicates held in memory at once: 250 of 5 runs x 57 games x 200 thresholds are well under 100 MB.
_BATCH = 250


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made: 95 % percentile intervals of 2,000 replicates unless told otherwise."""

    replicates: int = 2000
    confidence: float = 0.95
    seed: int = 0


def has_seeds(scores: Array) -> bool:
    """Whether any game has two runs or more, without which there is nothing to resample."""
    return bool((np.isfinite(scores).sum(axis=0) > 1).any())


def confidence_interval(statistic: Statistic, *matrices: Array, how: Bootstrap) -> tuple[Array, Array]:
    """Lower and upper bound of ``statistic(*matrices)``, each matrix ``[runs, games]`` resampled by game.

    `statistic` must accept matrices with leading axes, ``[..., runs, games]``, as all of `gdi.scores.metrics` do; it
    may return several numbers along a new last axis. A game with a single run is constant over the replicates.
    """
    from scipy.stats import bootstrap  # a second of import that only intervals need

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
        # SciPy wants several results along a first axis, replicates last.
        return np.moveaxis(value, -1, 0) if value.ndim > len(batch) else value

    result = bootstrap(
        samples,
        resampled,
        n_resamples=how.replicates,
        batch=_BATCH,
        vectorized=True,
        axis=-1,
        confidence_level=how.confidence,
        method="percentile",
        rng=np.random.default_rng(how.seed),
    )
    return np.asarray(result.confidence_interval.low), np.asarray(result.confidence_interval.high)
