"""Bootstrap intervals: seeded, stratified by game, and as wide as they should be."""

from __future__ import annotations

import numpy as np
import pytest

from gdi.scores import Agent, Bootstrap, confidence_interval, metrics, published_agents, summarize
from gdi.scores.intervals import has_seeds
from gdi.scores.reference import Array, load_reference


def test_same_seed_same_interval_and_another_seed_another_one(five_seeds: Agent) -> None:
    def interval(seed: int) -> tuple[Array, Array]:
        return confidence_interval(metrics.iqm, five_seeds.scores, bootstrap=Bootstrap(200, seed=seed))

    assert interval(3) == interval(3)
    assert interval(3) != interval(4)
    # The global generator is neither used nor disturbed.
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert interval(3) == interval(3)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_resampling_is_by_game() -> None:
    """Games on separate scales never mix: a resampled game keeps its own runs."""
    scores = np.arange(57) * 1000.0 + np.array([[1.0], [2.0], [3.0]])
    seen: list[Array] = []

    def spy(matrix: Array) -> Array:
        seen.append(matrix)
        return metrics.mean(matrix)

    confidence_interval(spy, scores, bootstrap=Bootstrap(50))
    drawn = np.concatenate([np.atleast_3d(m).reshape(-1, 3, 57) for m in seen])
    assert (drawn // 1000 == np.arange(57)).all()
    assert set(np.unique(drawn % 1000)) == {1.0, 2.0, 3.0}
    # Games are resampled independently of each other, not as whole runs.
    assert any(len(set(replicate[0] % 1000)) > 1 for replicate in drawn)


def test_interval_equals_a_bootstrap_written_out(five_seeds: Agent) -> None:
    normalized = metrics.hns(five_seeds.scores, load_reference())
    low, high = confidence_interval(metrics.mean, normalized, bootstrap=Bootstrap(4000, confidence=0.9))
    rng = np.random.default_rng(123)
    means = []
    for _ in range(4000):
        picked = rng.integers(5, size=(5, 57))
        means.append(normalized[picked, np.arange(57)].mean())
    expected = np.percentile(means, [5, 95])
    spread = expected[1] - expected[0]
    assert [float(low), float(high)] == pytest.approx(expected.tolist(), abs=0.06 * spread)


def test_intervals_cover_the_truth_about_as_often_as_promised() -> None:
    """57 games of normal scores with known mean 0 and 10 runs: a 90 % interval covers it nearly 90 % of the time."""
    rng = np.random.default_rng(5)
    hits = 0
    for trial in range(150):
        scores = rng.normal(0, 1, (10, 57))
        low, high = confidence_interval(metrics.mean, scores, bootstrap=Bootstrap(150, confidence=0.9, seed=trial))
        hits += bool(low <= 0 <= high)
    # The percentile interval of 10 runs is a little narrow (the factor is sqrt(9/10)), which gives about 88 %.
    assert 0.78 <= hits / 150 <= 0.96


def test_wider_confidence_is_a_wider_interval(five_seeds: Agent) -> None:
    narrow = confidence_interval(metrics.mean, five_seeds.scores, bootstrap=Bootstrap(500, confidence=0.5))
    wide = confidence_interval(metrics.mean, five_seeds.scores, bootstrap=Bootstrap(500, confidence=0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_equal_runs_have_no_spread(five_seeds: Agent) -> None:
    scores = np.repeat(five_seeds.scores[:1], 3, axis=0)
    low, high = confidence_interval(metrics.iqm, scores, bootstrap=Bootstrap(50))
    assert low == pytest.approx(high)
    assert low == pytest.approx(metrics.iqm(scores))


def test_games_with_one_run_stay_as_they_are() -> None:
    scores = np.full((4, 57), np.nan)
    scores[0] = 1.0
    scores[:, 0] = [1.0, 2.0, 3.0, 4.0]
    low, high = confidence_interval(metrics.game_means, scores, bootstrap=Bootstrap(300))
    assert (low[1:] == 1).all()
    assert (high[1:] == 1).all()
    assert 1 <= low[0] < 2.5 < high[0] <= 4


def test_one_run_has_no_interval() -> None:
    agent = published_agents()["gdi_h3"]
    assert not has_seeds(agent.scores)
    with pytest.raises(ValueError, match="nothing to resample"):
        confidence_interval(metrics.mean, agent.scores, bootstrap=Bootstrap(10))
    assert summarize(agent, load_reference(), Bootstrap(10)).intervals == {}


def test_every_aggregate_gets_an_interval_around_it(five_seeds: Agent) -> None:
    summary = summarize(five_seeds, load_reference(), Bootstrap(300))
    assert set(summary.intervals) == set(summary.values)
    for name in ("mean_hns", "iqm_hns", "iqm_hwrns", "mean_saber", "optimality_gap_hns"):
        low, high = summary.intervals[name]
        assert low < summary.values[name] < high, name
    assert summarize(five_seeds, load_reference(), Bootstrap(0)).intervals == {}


def test_two_agents_are_resampled_independently(five_seeds: Agent) -> None:
    shifted = five_seeds.scores * np.random.default_rng(1).normal(1, 0.2, (5, 57))
    low, high = confidence_interval(
        metrics.probability_of_improvement, five_seeds.scores, shifted, bootstrap=Bootstrap(300)
    )
    point = metrics.probability_of_improvement(five_seeds.scores, shifted)
    assert 0 < low < point < high < 1


def test_wins_against_one_run_are_the_probability_of_improvement(five_seeds: Agent) -> None:
    """The chance to beat an opponent of one run is a mean of wins, also in every replicate."""
    other = published_agents()["agent57"].scores
    won = metrics.wins(five_seeds.scores, metrics.game_means(other))
    value = float(metrics.probability_of_improvement(five_seeds.scores, other))
    assert float(metrics.mean(won)) == pytest.approx(value, rel=1e-14)
    how = Bootstrap(200, seed=3)
    slow = confidence_interval(metrics.probability_of_improvement, five_seeds.scores, other, bootstrap=how)
    np.testing.assert_allclose(confidence_interval(metrics.mean, won, bootstrap=how), slow, rtol=1e-14)


def test_wins_count_a_tie_half_and_skip_a_missing_score() -> None:
    won = metrics.wins(np.array([[1.0, 2.0, np.nan], [3.0, 2.5, 4.0]]), np.array([2.0, 2.0, 1.0]))
    np.testing.assert_array_equal(won, [[0.0, 0.5, np.nan], [1.0, 1.0, 1.0]])
