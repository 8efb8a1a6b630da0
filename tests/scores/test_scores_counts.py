"""Counts: a metric of counted scores is the metric of scores that are written out as often."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gdi.scores import counts as counting
from gdi.scores import metrics
from gdi.scores.reference import Array, Reference

NAN = np.nan
TAUS = np.array([2.0, -1.0, 0.5, 0.0])
TINY = Reference("tiny", np.zeros(3), np.ones(3), np.array([1.0, 0.0, 2.0]))
METRICS: dict[str, Callable[..., Array]] = {
    **metrics.STATISTICS,
    "game_means": metrics.game_means,
    "hwrb": lambda scores, *counts: metrics.hwrb(scores, TINY, *counts),
    "profile": lambda scores, *counts: metrics.performance_profile(scores, TAUS, *counts),
}

# Few different scores give ties, and a NaN is a missing one.
few = st.sampled_from([NAN, -1.5, 0.0, 0.5, 1.0, 3.0])
matrices = st.integers(1, 6).flatmap(lambda runs: arrays(np.float64, (runs, 3), elements=few))


@st.composite
def counted(draw: st.DrawFn) -> tuple[Array, Array]:
    """Draw scores, of which every game has at least one, and their counts, of which at least one is not 0."""
    scores = draw(matrices)
    scores[0] = [0.5, -1.5, 0.5]
    counts = draw(arrays(np.int64, scores.shape, elements=st.integers(0, 3)))
    counts[0] += counts.sum(axis=0) == 0
    counts[0] += np.where(np.isfinite(scores), counts, 0).sum(axis=0) == 0
    return scores, counts


def written_out(scores: Array, counts: Array) -> Array:
    """Return scores repeated as often as they count."""
    games = [np.repeat(x, n) for x, n in zip(scores.T, counts.T, strict=True)]
    games = [x[np.isfinite(x)] for x in games]
    out = np.full((max(map(len, games)), len(games)), NAN)
    for game, runs in enumerate(games):
        out[: len(runs), game] = runs
    return out


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=40, deadline=None)
@given(counted())
def test_a_count_is_a_repetition(name: str, sample: tuple[Array, Array]) -> None:
    scores, counts = sample
    expected = METRICS[name](written_out(scores, counts))
    np.testing.assert_allclose(METRICS[name](scores, counts), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(counted(), counted())
def test_counts_of_both_agents_are_repetitions(x: tuple[Array, Array], y: tuple[Array, Array]) -> None:
    chance = metrics.probability_of_improvement
    expected = chance(written_out(*x), written_out(*y))
    assert chance(x[0], y[0], x[1], y[1]) == pytest.approx(expected, rel=1e-12)
    assert chance(x[0], y[0], x[1]) == pytest.approx(chance(written_out(*x), y[0]), rel=1e-12)
    assert chance(x[0], y[0], None, y[1]) == pytest.approx(chance(x[0], written_out(*y)), rel=1e-12)


def test_iqm_of_counts_by_hand() -> None:
    # 1 1 1 2 2 9 9 9: two are dropped at each end, and 1 2 2 9 are kept.
    scores, counts = np.array([[9.0, 1.0], [2.0, NAN]]), np.array([[3, 3], [2, 5]])
    assert metrics.iqm(scores, counts) == (1 + 2 + 2 + 9) / 4


def test_probability_of_improvement_of_counts_by_hand() -> None:
    # X draws 1 once and 3 three times; Y draws 3 twice and 2 once. 1 never wins. 3 beats 2, and ties with 3.
    x, y = np.array([[1.0], [3.0]]), np.array([[3.0], [2.0]])
    value = metrics.probability_of_improvement(x, y, np.array([[1], [3]]), np.array([[2], [1]]))
    assert value == pytest.approx(3 * (2 / 2 + 1) / (4 * 3))


@pytest.mark.parametrize("block", [1, 50, 10**9])
@pytest.mark.parametrize("name", METRICS)
def test_blocks_of_replicates_do_not_change_them(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    scores, counts = rng.normal(size=(4, 3)), rng.integers(0, 3, (7, 4, 3))
    scores[1, 2] = NAN
    counts[:, 0] += 1
    expected = [METRICS[name](scores, one) for one in counts]
    monkeypatch.setattr(counting, "_BLOCK", block)
    np.testing.assert_allclose(METRICS[name](scores, counts), expected, rtol=1e-14)


@pytest.mark.parametrize("name", METRICS)
def test_several_matrices_share_the_counts_of_a_replicate(name: str) -> None:
    """Matrices ``[2, runs, games]`` and counts ``[replicates, 1, runs, games]`` give ``[replicates, 2]``."""
    rng = np.random.default_rng(2)
    scores, counts = rng.normal(size=(2, 4, 3)), rng.integers(1, 3, (5, 4, 3))
    expected = [[METRICS[name](matrix, one) for matrix in scores] for one in counts]
    np.testing.assert_allclose(METRICS[name](scores, counts[:, None]), expected, rtol=1e-14)


def test_the_mean_of_equal_runs_is_exact() -> None:
    """The record of ice hockey is 9.6, which has no exact binary form. Rounding must not lose the breakthrough."""
    for runs in range(1, 60):
        assert (metrics.game_means(np.full((runs, 2), 9.6)) == 9.6).all()
