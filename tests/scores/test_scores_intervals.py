"""Bootstrap intervals: seeded, stratified by game, and as wide as they should be."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from gdi.scores import Agent, Bootstrap, confidence_interval, intervals, metrics, published_agents, summarize
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
    """A replicate has as many runs of each game as there are, and games are drawn independently of each other."""
    scores = np.arange(12.0).reshape(4, 3)
    scores[1, 1] = scores[[0, 1, 3], 2] = np.nan
    seen: list[Array] = []

    def spy(matrix: Array, counts: Array) -> Array:
        seen.append(counts)
        return metrics.mean(matrix, counts)

    confidence_interval(spy, scores, bootstrap=Bootstrap(600))
    assert [len(counts) for counts in seen] == [250, 250, 100]
    counts = np.concatenate(seen)
    assert (counts.sum(axis=1) == [4, 3, 1]).all()
    assert (counts[:, np.isnan(scores)] == 0).all()
    assert (counts[:, 2, 2] == 1).all()
    # Each run is drawn once on average, and different games differ.
    np.testing.assert_allclose(counts.mean(axis=0)[np.isfinite(scores)], 1, atol=0.15)
    assert abs(np.corrcoef(counts[:, 0, 0], counts[:, 0, 1])[0, 1]) < 0.15


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


def test_missing_games_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aggregates leave out missing games, but replicates are drawn in batches as if all 57 had runs."""
    agent = Agent.from_dict("mine", {"pong": [1.0, 5.0, 12.0], "alien": [500.0, 900.0], "hero": 3000.0})
    monkeypatch.setattr(intervals, "_CELLS", 3 * 57 * 20)
    found = summarize(agent, load_reference(), Bootstrap(70)).intervals["mean_hns"]
    normalized = metrics.hns(agent.scores, load_reference())
    assert intervals.batch_size(normalized) == 20 < intervals.batch_size(normalized[:, agent.reported]) == 250
    whole = confidence_interval(metrics.mean, normalized, bootstrap=Bootstrap(70))
    np.testing.assert_allclose(found, whole, rtol=1e-12)
    other = confidence_interval(metrics.mean, normalized[:, agent.reported], bootstrap=Bootstrap(70))
    assert not np.allclose(found, other)


def test_very_many_scores_have_fewer_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MOST_SCORES", 40)
    monkeypatch.setattr(intervals, "FEWEST_REPLICATES", 10)
    scores = np.full((50, 2), np.nan)
    for count, replicates in ((20, 100), (25, 64), (40, 25)):
        scores[:count] = 1.0  # twice as many scores, because there are two games
        assert Bootstrap(100).replicates_for(scores) == replicates
    assert Bootstrap(60).replicates_for(scores) == 15
    assert Bootstrap(11).replicates_for(scores) == 10
    assert Bootstrap(5).replicates_for(scores) == 5
    seen: list[int] = []

    def spy(matrix: Array, counts: Array) -> Array:
        seen.append(len(counts))
        return metrics.mean(matrix, counts)

    confidence_interval(spy, scores, bootstrap=Bootstrap(60))
    assert sum(seen) == 15


def test_many_runs_of_a_game_are_counted_without_overflow() -> None:
    """40,000 runs need more than two bytes for a running count, and so do their wins."""
    x, y = np.arange(40_000.0)[:, None], np.arange(40_000.0)[:, None] - 1000.0
    low, high = confidence_interval(metrics.probability_of_improvement, x, y, bootstrap=Bootstrap(20))
    # 1 - P(X < Y) = 1 - (39000 / 40000)^2 / 2
    assert low < 1 - 0.975**2 / 2 < high
    assert high - low < 0.02
    low, high = confidence_interval(metrics.iqm, x, bootstrap=Bootstrap(20))
    assert low < 19_999.5 < high
    assert high - low < 600


def test_the_memory_of_a_bootstrap_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes 18 bytes for each cell: two for its count, and eight each for a draw and for its tally."""
    assert intervals._CELLS * 18 < 300e6
    monkeypatch.setattr(intervals, "_CELLS", 150_000)
    scores = np.random.default_rng(0).random((2000, 1))
    tracemalloc.start()
    try:
        confidence_interval(metrics.mean, scores, bootstrap=Bootstrap(250))  # 9 MB, if they were drawn together
        assert tracemalloc.get_traced_memory()[1] < 2 * 150_000 * 18
    finally:
        tracemalloc.stop()
