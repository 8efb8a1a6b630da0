"""The paper's evaluation criteria: each is a function of a score matrix, each equation one function.

A score matrix is ``[..., runs, games]``: NaN where there is no score, extra axes in front for bootstrap replicates.
Normalised scores are fractions here (1.0 is the human, or the record); tables print them in percent.

The formulas are those of the paper's table "Multivariate evaluation system" (Tab: multivariate evaluation system);
the aggregates IQM, optimality gap, probability of improvement and performance profile are those of Agarwal et al. 2021
(rliable), whose own functions are the oracle of our tests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gdi.scores.games import GAMES
from gdi.scores.reference import Array, Reference

SABER_CAP = 2.0
FRAMES_PER_YEAR = 100_000 * 2 * 24 * 365  # the paper's 100,000 frames per half hour, day and night


def hns(scores: Array, reference: Reference) -> Array:
    """Human normalised score: (G - G_random) / (G_human - G_random)."""
    return (scores - reference.random) / (reference.human - reference.random)


def hwrns(scores: Array, reference: Reference) -> Array:
    """Human world record normalised score: (G - G_random) / (G_record - G_random)."""
    return (scores - reference.random) / (reference.world_record - reference.random)


def saber(scores: Array, reference: Reference) -> Array:
    """min{HWRNS, 200 %}. There is no lower cap."""
    return np.minimum(hwrns(scores, reference), SABER_CAP)


def normalise(game: str, score: float, reference: Reference) -> dict[str, float]:
    """HNS, HWRNS and SABER of one score in one game, as fractions."""
    scores = np.full(len(GAMES), np.nan)
    place = GAMES.index(game)
    scores[place] = score
    return {name: float(criterion(scores, reference)[place]) for name, criterion in CRITERIA.items()}


CRITERIA = {"hns": hns, "hwrns": hwrns, "saber": saber}


def game_means(scores: Array) -> Array:
    """Mean over the runs of each game, ``[..., games]``; NaN for a game without any run."""
    present = np.isfinite(scores)
    count = present.sum(axis=-2)
    total = np.where(present, scores, 0.0).sum(axis=-2)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def breakthroughs(scores: Array, reference: Reference) -> NDArray[np.bool_]:
    """G_i >= G_record of each game, by its mean score. Equality counts (boxing has a highest possible score)."""
    return game_means(scores) >= reference.world_record


def hwrb(scores: Array, reference: Reference) -> NDArray[np.int_]:
    """Human world record breakthroughs: sum_i (G_i >= G_record,i)."""
    return np.asarray(breakthroughs(scores, reference).sum(axis=-1))


def mean(normalised: Array) -> Array:
    """Mean over games of each game's mean over runs."""
    per_game = game_means(normalised)
    present = np.isfinite(per_game)
    return np.asarray(np.where(present, per_game, 0.0).sum(axis=-1) / present.sum(axis=-1))


def median(normalised: Array) -> Array:
    """Median over games of each game's mean over runs."""
    return np.asarray(np.nanmedian(game_means(normalised), axis=-1))


def iqm(normalised: Array) -> Array:
    """Interquartile mean over runs and games together: the mean of what is left when a quarter of the scores is cut
    from each end. Of n scores floor(n / 4) go at each end, as in `scipy.stats.trim_mean`, whose import alone would
    take longer than the rest of ``gdi scores``."""
    pooled = np.sort(_pooled(normalised), axis=-1)  # NaN last
    count = np.isfinite(pooled).sum(axis=-1, keepdims=True)
    cut = count // 4
    rank = np.arange(pooled.shape[-1])
    kept = (rank >= cut) & (rank < count - cut)
    return np.asarray(np.where(kept, pooled, 0.0).sum(axis=-1) / kept.sum(axis=-1))


def optimality_gap(normalised: Array, threshold: float = 1.0) -> Array:
    """How far runs fall short of the threshold on average: threshold - mean(min(score, threshold))."""
    pooled = _pooled(normalised)
    present = np.isfinite(pooled)
    capped = np.where(present, np.minimum(pooled, threshold), 0.0)
    return np.asarray(threshold - capped.sum(axis=-1) / present.sum(axis=-1))


STATISTICS = {"mean": mean, "median": median, "iqm": iqm, "optimality_gap": optimality_gap}


def probability_of_improvement(scores: Array, other: Array) -> Array:
    """P(X > Y): how likely a random run of X beats a random run of Y on a random game; a tie counts one half.

    mean over games of (1 / NM) sum_ij ([x_i > y_j] + [x_i = y_j] / 2), over the games that both have.
    """
    x = scores[..., :, None, :]
    y = other[..., None, :, :]
    present = np.isfinite(x) & np.isfinite(y)
    wins = np.where(present, (x > y) + 0.5 * (x == y), 0.0).sum(axis=(-3, -2))
    pairs = present.sum(axis=(-3, -2))
    shared = pairs > 0
    per_game = np.where(shared, wins / np.maximum(pairs, 1), 0.0)
    return np.asarray(per_game.sum(axis=-1) / shared.sum(axis=-1))


def performance_profile(normalised: Array, thresholds: ArrayLike) -> Array:
    """Score distribution: the fraction of runs and games above each threshold tau, ``[..., thresholds]``."""
    pooled = np.sort(_pooled(normalised), axis=-1)
    count = np.isfinite(pooled).sum(axis=-1, keepdims=True)
    taus = np.asarray(thresholds, dtype=np.float64)
    flat = pooled.reshape(-1, pooled.shape[-1])
    below = np.stack([np.searchsorted(row, taus, side="right") for row in flat])
    return np.asarray(1.0 - below.reshape(*pooled.shape[:-1], taus.size) / count)


def game_time(frames: float) -> float:
    """Years of play: Num.Frames / (100000 * 2 * 24 * 365)."""
    return frames / FRAMES_PER_YEAR


def learning_efficiency(criterion: float, frames: float) -> float:
    """Related evaluation criterion / Num.Frames, the criterion as a fraction: 9620.98 % in 2e8 frames is 4.81e-7."""
    return criterion / frames


def dominant_games(normalised: Array, share: float = 0.5) -> tuple[NDArray[np.int_], Array]:
    """The fewest games that together make up `share` of the sum behind the mean: (indices, their shares of it)."""
    per_game = np.nan_to_num(game_means(normalised), nan=0.0)
    total = per_game.sum()
    if total <= 0:  # nobody carries a mean that is not there
        return np.array([], dtype=np.int_), np.array([])
    order = np.argsort(-per_game, kind="stable")
    order = order[per_game[order] > 0]
    shares = per_game[order] / total
    count = int(np.searchsorted(np.cumsum(shares), share)) + 1
    return order[:count], shares[:count]


def _pooled(normalised: Array) -> Array:
    """Runs and games as one axis: ``[..., runs * games]``."""
    return normalised.reshape(*normalised.shape[:-2], -1)
