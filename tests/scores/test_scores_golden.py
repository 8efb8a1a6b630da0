"""Published intervals do not change: golden values, and the same bootstrap with a copy of the scores per replicate.

The golden values are those of a bootstrap that copied the scores and computed each metric from scratch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import bootstrap as resample

from gdi.report.sections.curves import iqm_per_point
from gdi.scores import Agent, Bootstrap, choose_agents, confidence_interval, judge, metrics, summarize
from gdi.scores.games import GAMES
from gdi.scores.reference import Array, load_reference

GOLDEN = Path(__file__).parent / "golden_intervals.json"
# 250 replicates are drawn together, so these are two batches.
HOW = Bootstrap(replicates=300, confidence=0.9, seed=5)
TAUS = np.array([-10.0, 0.0, 2.0, 5.0, 30.0])
NAN = np.nan


def grid(runs: int, games: int, step: int) -> Array:
    """Return scores from -14 to 86 in halves, with ties within and between games."""
    run, game = np.mgrid[:runs, :games]
    return ((37 * run * run + 11 * game * (run + step)) % 201) / 2.0 - 14.0


def ragged(step: int = 3) -> Array:
    """Return games with 5, 2, 1, 4 and 5 runs, whose gaps are at the start, in the middle and at the end."""
    scores = grid(5, 5, step)
    scores[1:4, 1] = NAN
    scores[[0, 1, 3, 4], 2] = NAN
    scores[0, 3] = NAN
    return scores


def agent(name: str, step: int, games: int) -> Agent:
    """Return an agent with one to five runs per game, some of them ties with MuZero."""
    muzero = choose_agents("muzero")[0].scores[0]
    scores = {
        game: [float(muzero[i]) * (1 + 0.25 * ((run + i + step) % 3 - 1)) for run in range(1 + (i + step) % 5)]
        for i, game in enumerate(GAMES[:games])
    }
    return Agent.from_dict(name, scores, 2e8)


def profile(scores: Array, *counts: Array) -> Array:
    return metrics.performance_profile(scores, TAUS, *counts)


STATISTICS: dict[str, Callable[..., Array]] = {
    **metrics.STATISTICS,
    "game_means": metrics.game_means,
    "profile": profile,
    "iqm_per_point": iqm_per_point,
}
MATRICES = {"full": grid(4, 5, 2), "ragged": ragged(), "one game": grid(7, 1, 1)}


def all_intervals() -> dict[str, list[object]]:
    """Return every interval of this page, with the bounds as lists."""
    found: dict[str, object] = {}
    for name, scores in MATRICES.items():
        for statistic, function in STATISTICS.items():
            found[f"{statistic}, {name}"] = confidence_interval(function, scores, bootstrap=HOW)
    improvement = metrics.probability_of_improvement
    found["improvement, both ragged"] = confidence_interval(improvement, ragged(), ragged(4)[:3], bootstrap=HOW)
    found["improvement, one run"] = confidence_interval(improvement, ragged(), grid(1, 5, 3), bootstrap=HOW)
    mine = [agent("a", 0, 57), agent("b", 5, 57), agent("c", 3, 40)]
    for name, bounds in summarize(mine[0], load_reference(), HOW).intervals.items():
        found[f"a, {name}"] = bounds
    for one in judge(mine, choose_agents("agent57,muzero,go_explore"), bootstrap=HOW).improvements:
        found[f"{one.agent} over {one.other}"] = one.interval
    return {name: np.asarray(bounds).tolist() for name, bounds in found.items()}


def test_intervals_are_those_that_were_published() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    found = all_intervals()
    assert found.keys() == golden.keys()
    for name, bounds in golden.items():
        np.testing.assert_allclose(found[name], bounds, rtol=1e-12, atol=1e-12, err_msg=name)
        assert np.ptp(bounds, axis=0).max() > 0, name


def by_copies(statistic: Callable[..., Array], *matrices: Array, bootstrap: Bootstrap) -> tuple[Array, Array]:
    """Return the interval from `scipy.stats.bootstrap`, with a copy of the resampled scores per replicate."""
    places = [(which, game) for which, matrix in enumerate(matrices) for game in range(matrix.shape[1])]
    samples = {(which, game): matrices[which][:, game] for which, game in places}
    samples = {place: runs[np.isfinite(runs)] for place, runs in samples.items()}
    samples = {place: runs for place, runs in samples.items() if runs.size > 1}

    def resampled(*draws: Array, axis: int) -> Array:
        batch = draws[0].shape[:-1]
        copies = [np.broadcast_to(matrix, (*batch, *matrix.shape)).copy() for matrix in matrices]
        for (which, game), draw in zip(samples, draws, strict=True):
            copies[which][..., game] = NAN
            copies[which][..., : draw.shape[-1], game] = draw
        value = statistic(*copies)
        return np.moveaxis(value, -1, 0) if value.ndim > len(batch) else value

    result = resample(
        list(samples.values()),
        resampled,
        n_resamples=bootstrap.replicates,
        batch=250,
        vectorized=True,
        confidence_level=bootstrap.confidence,
        method="percentile",
        rng=np.random.default_rng(bootstrap.seed),
    )
    return result.confidence_interval.low, result.confidence_interval.high


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", STATISTICS)
def test_counts_give_the_bootstrap_of_scipy(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.standard_cauchy((6, 9)), 1)
    scores[rng.random(scores.shape) < 0.3] = NAN
    scores[seed] = 1.0  # every game has a run
    how = Bootstrap(260, 0.8, seed)
    expected = by_copies(STATISTICS[name], scores, bootstrap=how)
    np.testing.assert_allclose(confidence_interval(STATISTICS[name], scores, bootstrap=how), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_counts_of_two_agents_give_the_bootstrap_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-3, 4, (runs, 8)).astype(np.float64) for runs in (5, 3))
    x[rng.random(x.shape) < 0.3], y[rng.random(y.shape) < 0.3] = NAN, NAN
    how = Bootstrap(260, 0.8, seed)
    expected = by_copies(metrics.probability_of_improvement, x, y, bootstrap=how)
    found = confidence_interval(metrics.probability_of_improvement, x, y, bootstrap=how)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
