"""The paper's evaluation criteria as functions of a score matrix, one function per equation.

A score matrix is ``[..., runs, games]``, with NaN for each missing score. Counts of the same shape say how often each
score counts. Bootstrap replicates are counts with an axis in front.
Normalized scores are fractions (1.0 is the human, or the record). Tables print them in percent.

The formulas are those of the paper's table "Multivariate evaluation system" (Tab: multivariate evaluation system). The
aggregates IQM, optimality gap, probability of improvement and performance profile are those of Agarwal et al. 2021
(rliable). Our tests compare them with rliable's functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gdi.scores.counts import (
    Counts,
    ascending,
    by_game,
    number_below,
    over_replicates,
    pooled,
    running_counts,
    take_last,
)
from gdi.scores.games import GAMES
from gdi.scores.reference import Array, Reference

SABER_CAP = 2.0
FRAMES_PER_YEAR = 100_000 * 2 * 24 * 365  # the paper's 100,000 frames per half hour, around the clock


def hns(scores: Array, reference: Reference) -> Array:
    """Return the human normalized score: (G - G_random) / (G_human - G_random)."""
    return (scores - reference.random) / (reference.human - reference.random)


def hwrns(scores: Array, reference: Reference) -> Array:
    """Return the human world record normalized score: (G - G_random) / (G_record - G_random)."""
    return (scores - reference.random) / (reference.world_record - reference.random)


def saber(scores: Array, reference: Reference) -> Array:
    """Return HWRNS capped at 200%: min{HWRNS, 200%}. There is no lower cap."""
    return np.minimum(hwrns(scores, reference), SABER_CAP)


def normalize(game: str, score: float, reference: Reference) -> dict[str, float]:
    """Return HNS, HWRNS and SABER of one score in one game, as fractions."""
    scores = np.full(len(GAMES), np.nan)
    place = GAMES.index(game)
    scores[place] = score
    return {name: float(criterion(scores, reference)[place]) for name, criterion in CRITERIA.items()}


CRITERIA = {"hns": hns, "hwrns": hwrns, "saber": saber}


def game_means(scores: Array, counts: Counts | None = None) -> Array:
    """Return the mean over the runs of each game, ``[..., games]``; NaN for a game without runs."""
    present = np.isfinite(scores)
    filled = np.where(present, scores, 0.0)
    # Rounding must not carry a mean out of the range of its runs, such as equal runs at the record.
    least, most = np.where(present, scores, np.inf).min(axis=-2), np.where(present, scores, -np.inf).max(axis=-2)

    def means(total: Array, number: Counts) -> Array:
        return np.where(number > 0, np.clip(total / np.maximum(number, 1), least, most), np.nan)

    if counts is None:
        return means(filled.sum(axis=-2), present.sum(axis=-2))
    values = by_game(filled)
    return over_replicates(
        lambda weights: means(np.einsum("...r,...r->...", weights, values), weights.sum(axis=-1)), (scores, counts)
    )


def breakthroughs(scores: Array, reference: Reference, counts: Counts | None = None) -> NDArray[np.bool_]:
    """Return which games' mean scores reach the world record: G_i >= G_record.

    Equality counts, because boxing has a highest possible score.
    """
    return game_means(scores, counts) >= reference.world_record


def hwrb(scores: Array, reference: Reference, counts: Counts | None = None) -> NDArray[np.int_]:
    """Count the human world record breakthroughs: sum_i (G_i >= G_record,i)."""
    return np.asarray(breakthroughs(scores, reference, counts).sum(axis=-1))


def mean(normalized: Array, counts: Counts | None = None) -> Array:
    """Return the mean over games of each game's mean over runs."""
    per_game = game_means(normalized, counts)
    present = np.isfinite(per_game)
    return np.asarray(np.where(present, per_game, 0.0).sum(axis=-1) / present.sum(axis=-1))


def median(normalized: Array, counts: Counts | None = None) -> Array:
    """Return the median over games of each game's mean over runs."""
    return np.asarray(np.nanmedian(game_means(normalized, counts), axis=-1))


def iqm(normalized: Array, counts: Counts | None = None) -> Array:
    """Return the interquartile mean over runs and games together.

    This is the mean after dropping a quarter of the scores at each end. Of n scores, floor(n / 4) are dropped at each
    end, as in `scipy.stats.trim_mean`. The scores are sorted once. A replicate only counts them in that order.
    """
    ranked, order = ascending(pooled(by_game(normalized)))
    values = np.nan_to_num(ranked)

    def middle_means(weights: Counts) -> Array:
        upto = running_counts(pooled(weights), order)
        total = upto[..., -1:]
        cut = total // 4
        kept = np.diff(np.clip(upto, cut, total - cut), axis=-1)
        return np.asarray(np.einsum("...s,...s->...", kept, values) / (total - 2 * cut)[..., 0])

    return over_replicates(middle_means, (normalized, counts))


def optimality_gap(normalized: Array, counts: Counts | None = None, threshold: float = 1.0) -> Array:
    """Return the average shortfall from the threshold: threshold - mean(min(score, threshold))."""
    capped = np.minimum(np.nan_to_num(by_game(normalized)), threshold)

    def gaps(weights: Counts) -> Array:
        return np.asarray(threshold - np.einsum("...gr,...gr->...", weights, capped) / weights.sum(axis=(-2, -1)))

    return over_replicates(gaps, (normalized, counts))


STATISTICS = {"mean": mean, "median": median, "iqm": iqm, "optimality_gap": optimality_gap}


def probability_of_improvement(
    scores: Array, other: Array, counts: Counts | None = None, other_counts: Counts | None = None
) -> Array:
    """Return P(X > Y): the chance that a random run of X beats one of Y on a random game.

    A tie counts one half. The value is the mean over the games that both have of (1 / NM) sum_ij ([x_i > y_j] + [x_i =
    y_j] / 2). The runs of Y are sorted once. The number of them below x_i is then a running count.
    """
    x, y = by_game(scores), by_game(other)
    order = np.argsort(y, axis=-1)
    below, not_above = number_below(x, y, ties=False), number_below(x, y, ties=True)

    def chances(weights: Counts, other_weights: Counts) -> Array:
        upto = running_counts(other_weights, order)
        twice = take_last(upto, below) + take_last(upto, not_above)
        pairs = weights.sum(axis=-1) * upto[..., -1]
        wins = np.einsum("...r,...r->...", weights, twice, dtype=np.float64) / 2
        shared = pairs > 0
        per_game = np.where(shared, wins / np.maximum(pairs, 1), 0.0)
        return np.asarray(per_game.sum(axis=-1) / shared.sum(axis=-1))

    return over_replicates(chances, (scores, counts), (other, other_counts))


def wins(scores: Array, opponent: Array) -> Array:
    """Return 1 for each run above the opponent's score of its game, ½ for a tie, 0 below, and NaN without a score."""
    return np.where(
        np.isfinite(scores) & np.isfinite(opponent), (scores > opponent) + 0.5 * (scores == opponent), np.nan
    )


def performance_profile(normalized: Array, thresholds: ArrayLike, counts: Counts | None = None) -> Array:
    """Return the fraction of runs and games above each threshold tau, ``[..., thresholds]``."""
    values, order = ascending(pooled(by_game(normalized)))
    taus = np.asarray(thresholds, dtype=np.float64)
    flat = values.reshape(-1, values.shape[-1])
    places = np.stack([np.searchsorted(row, taus, side="right") for row in flat])
    places = places.reshape(*values.shape[:-1], taus.size)

    def fractions(weights: Counts) -> Array:
        upto = running_counts(pooled(weights), order)
        return 1.0 - take_last(upto, places) / upto[..., -1:]

    return over_replicates(fractions, (normalized, counts))


def game_time(frames: float) -> float:
    """Return the years of play: Num.Frames / (100000 * 2 * 24 * 365)."""
    return frames / FRAMES_PER_YEAR


def learning_efficiency(criterion: float, frames: float) -> float:
    """Return the criterion, as a fraction, divided by Num.Frames.

    For example, 9620.98% in 2e8 frames is 4.81e-7.
    """
    return criterion / frames


def dominant_games(normalized: Array, share: float = 0.5) -> tuple[NDArray[np.int_], Array]:
    """Return the fewest games that together make up `share` of the sum behind the mean.

    The result is their indices and their shares of the sum.
    """
    per_game = np.nan_to_num(game_means(normalized), nan=0.0)
    total = per_game.sum()
    if total <= 0:  # without a positive mean no game dominates
        return np.array([], dtype=np.int_), np.array([])
    order = np.argsort(-per_game, kind="stable")
    order = order[per_game[order] > 0]
    shares = per_game[order] / total
    count = int(np.searchsorted(np.cumsum(shares), share)) + 1
    return order[:count], shares[:count]
