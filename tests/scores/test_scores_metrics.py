"""The criteria: by visible arithmetic, by their properties, and against rliable and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import rliable.metrics as rly
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gdi.scores import metrics
from gdi.scores.reference import Array, Reference, load_reference

NAN = np.nan
PAPER = load_reference("paper")


def _noise(seed: int, runs: int, scale: float) -> Array:
    """Scores as unlike each other as real ones: heavy tails, no two equal."""
    return np.clip(scale * np.random.default_rng(seed).standard_cauchy((runs, 57)), -1e6, 1e6)


# Hypothesis fills most of an array with one value, which finds corner cases but leaves, say, all medians equal.
matrices = st.one_of(
    st.integers(1, 6).flatmap(
        lambda runs: arrays(np.float64, (runs, 57), elements=st.floats(-1e6, 1e6, allow_subnormal=False))
    ),
    st.builds(_noise, st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([1.0, 1e3])),
)


def row(*values: float) -> Array:
    """A score matrix of one run whose first games have these scores, and the rest none."""
    return np.array([[*values, *([NAN] * (57 - len(values)))]])


# ------------------------------------------------------------------------------------------------- visible arithmetic


def test_normalized_scores_of_alien() -> None:
    # alien: random 227.8, human 7127.8, record 251916. GDI-H3 scores 48735.
    alien = row(48735.0)
    assert metrics.hns(alien, PAPER)[0, 0] == pytest.approx((48735 - 227.8) / (7127.8 - 227.8))
    assert metrics.hwrns(alien, PAPER)[0, 0] == pytest.approx((48735 - 227.8) / (251916 - 227.8))
    assert f"{100 * metrics.hns(alien, PAPER)[0, 0]:.2f}" == "703.00"
    assert f"{100 * metrics.hwrns(alien, PAPER)[0, 0]:.2f}" == "19.27"


def test_saber_caps_above_and_not_below(tiny_reference: Reference) -> None:
    scores = row(199.0, 200.0, 201.0, 5000.0, -300.0)
    assert metrics.saber(scores, tiny_reference)[0, :5].tolist() == [1.99, 2.0, 2.0, 2.0, -3.0]


def test_breakthroughs_count_equality_and_use_the_mean_of_runs(tiny_reference: Reference) -> None:
    # Records are 100. Means: 100 (equal), 99.5, 101, none.
    scores = np.full((2, 57), NAN)
    scores[:, :3] = [[90.0, 99.0, 101.0], [110.0, 100.0, 101.0]]
    assert metrics.breakthroughs(scores, tiny_reference)[:4].tolist() == [True, False, True, False]
    assert metrics.hwrb(scores, tiny_reference) == 2


def test_aggregates_of_four_games() -> None:
    x = row(0.0, 0.2, 0.6, 8.0)
    assert metrics.mean(x) == pytest.approx((0.0 + 0.2 + 0.6 + 8.0) / 4)
    assert metrics.median(x) == pytest.approx((0.2 + 0.6) / 2)
    assert metrics.iqm(x) == pytest.approx((0.2 + 0.6) / 2)  # a quarter of 4 is cut at each end
    assert metrics.optimality_gap(x) == pytest.approx(((1 - 0.0) + (1 - 0.2) + (1 - 0.6) + 0) / 4)


def test_median_is_of_game_means_and_iqm_is_of_runs() -> None:
    x = np.full((3, 57), NAN)
    x[:, :3] = [[0.0, 1.0, 2.0], [0.0, 1.0, 20.0], [9.0, 1.0, 50.0]]
    # game means 3, 1, 24; all runs sorted 0 0 1 1 1 2 9 20 50
    assert metrics.median(x) == 3
    assert metrics.mean(x) == pytest.approx((3 + 1 + 24) / 3)
    assert metrics.iqm(x) == pytest.approx((1 + 1 + 1 + 2 + 9) / 5)  # floor(9 / 4) = 2 are cut at each end


def test_aggregates_of_unequal_numbers_of_runs() -> None:
    x = np.full((3, 57), NAN)
    x[0, :2] = [1.0, 10.0]
    x[1, 0] = 3.0
    assert metrics.game_means(x)[:3].tolist()[:2] == [2.0, 10.0]
    assert np.isnan(metrics.game_means(x)[2])
    assert metrics.mean(x) == pytest.approx((2.0 + 10.0) / 2)  # by game, not by run
    assert metrics.iqm(x) == pytest.approx((1.0 + 3.0 + 10.0) / 3)  # of 3 runs floor(3/4) = 0 are cut


def test_game_time_and_learning_efficiency() -> None:
    assert metrics.game_time(2e8) == pytest.approx(2e8 / (100_000 * 2 * 24 * 365))
    assert f"{metrics.game_time(2e8):.3f}" == "0.114"
    assert metrics.learning_efficiency(96.2098, 2e8) == pytest.approx(4.81049e-7)


def test_probability_of_improvement_by_hand() -> None:
    # Game 0: runs {1, 3} against {2, 3}: 1>2 no, 1>3 no, 3>2 yes, 3=3 half -> 1.5 / 4.
    # Game 1: one run 5 against {0}: 1. Game 2: only one of the two has it: not counted.
    x, y = np.full((2, 57), NAN), np.full((2, 57), NAN)
    x[:, 0], y[:, 0] = [1.0, 3.0], [2.0, 3.0]
    x[0, 1], y[0, 1] = 5.0, 0.0
    x[0, 2] = 9.0
    assert metrics.probability_of_improvement(x, y) == pytest.approx((1.5 / 4 + 1) / 2)


def test_performance_profile_by_hand() -> None:
    x = row(0.1, 0.5, 0.5, 2.0)
    # strictly above: tau = 0.5 leaves only 2.0
    assert metrics.performance_profile(x, [0.0, 0.1, 0.49, 0.5, 2.0]).tolist() == [1.0, 0.75, 0.75, 0.25, 0.0]


def test_dominant_games_are_the_fewest_that_make_half() -> None:
    which, shares = metrics.dominant_games(row(1.0, 60.0, -2.0, 30.0, 11.0))
    assert which.tolist() == [1]
    assert shares.tolist() == [0.6]
    which, shares = metrics.dominant_games(row(40.0, 35.0, 25.0))
    assert which.tolist() == [0, 1]
    assert shares.tolist() == [0.4, 0.35]
    assert len(metrics.dominant_games(row(-1.0, -5.0))[0]) == 0


# -------------------------------------------------------------------------------------------------------- properties


@given(matrices, st.floats(0.01, 100), st.floats(-1e4, 1e4))
def test_normalized_scores_do_not_depend_on_the_unit_of_a_game(scores: Array, factor: float, shift: float) -> None:
    """Scores and baselines in other units (all times a factor, plus a shift) have the same HNS, HWRNS and SABER."""
    moved = Reference("moved", *(factor * x + shift for x in (PAPER.random, PAPER.human, PAPER.world_record)))
    for criterion in metrics.CRITERIA.values():
        a, b = criterion(scores, PAPER), criterion(factor * scores + shift, moved)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@given(matrices)
def test_caps(scores: Array) -> None:
    capped, free = metrics.saber(scores, PAPER), metrics.hwrns(scores, PAPER)
    assert (capped <= 2).all()
    assert (capped <= free).all()
    assert (capped[free <= 2] == free[free <= 2]).all()


def test_baselines_score_zero_and_one() -> None:
    for name in ("paper", "printed", "standard"):
        reference = load_reference(name)
        np.testing.assert_allclose(metrics.hns(reference.random[None], reference), 0)
        np.testing.assert_allclose(metrics.hns(reference.human[None], reference), 1)
        np.testing.assert_allclose(metrics.hwrns(reference.world_record[None], reference), 1)
        assert metrics.hwrb(reference.world_record[None], reference) == 57
        assert metrics.hwrb(reference.human[None], reference) == 0


@given(matrices, st.randoms())
def test_aggregates_do_not_depend_on_the_order_of_games_or_runs(scores: Array, random: object) -> None:
    columns, rows = list(range(57)), list(range(len(scores)))
    random.shuffle(columns)  # type: ignore[attr-defined]
    random.shuffle(rows)  # type: ignore[attr-defined]
    shuffled = scores[rows][:, columns]
    for statistic in metrics.STATISTICS.values():
        assert statistic(scores) == pytest.approx(statistic(shuffled), rel=1e-9, abs=1e-9)
    taus = np.linspace(-1e6, 1e6, 7)
    np.testing.assert_array_equal(
        metrics.performance_profile(scores, taus), metrics.performance_profile(shuffled, taus)
    )


@given(matrices, st.floats(0.1, 10))
def test_mean_median_and_iqm_scale_with_the_scores(scores: Array, factor: float) -> None:
    for name in ("mean", "median", "iqm"):
        statistic = metrics.STATISTICS[name]
        assert statistic(factor * scores) == pytest.approx(factor * statistic(scores), rel=1e-9, abs=1e-6)


@given(matrices)
def test_aggregates_agree_with_rliable(scores: Array) -> None:
    close = {"rel": 1e-9, "abs": 1e-6}
    assert metrics.mean(scores) == pytest.approx(rly.aggregate_mean(scores), **close)
    assert metrics.median(scores) == pytest.approx(rly.aggregate_median(scores), **close)
    assert metrics.iqm(scores) == pytest.approx(rly.aggregate_iqm(scores), **close)
    assert metrics.optimality_gap(scores) == pytest.approx(rly.aggregate_optimality_gap(scores), **close)


@given(matrices, st.data())
def test_iqm_agrees_with_a_direct_computation_also_with_gaps(scores: Array, data: st.DataObject) -> None:
    gaps = data.draw(arrays(np.bool_, scores.shape, elements=st.booleans()))
    assume(not gaps.all())
    scores = np.where(gaps, NAN, scores)
    present = sorted(scores[~gaps].tolist())
    cut = len(present) // 4
    kept = present[cut : len(present) - cut]
    assert metrics.iqm(scores) == pytest.approx(sum(kept) / len(kept), rel=1e-9, abs=1e-6)
    assert metrics.iqm(scores) == pytest.approx(scipy.stats.trim_mean(present, 0.25), rel=1e-9, abs=1e-6)


small = arrays(np.float64, st.tuples(st.integers(1, 4), st.just(57)), elements=st.integers(-3, 3).map(float))


@settings(max_examples=25, deadline=None)
@given(small, small)
def test_probability_of_improvement_agrees_with_rliable_and_is_antisymmetric(x: Array, y: Array) -> None:
    forward = metrics.probability_of_improvement(x, y)
    assert forward == pytest.approx(rly.probability_of_improvement(x, y))
    assert forward + metrics.probability_of_improvement(y, x) == pytest.approx(1)


@given(matrices)
def test_profiles_fall_from_one_to_zero_and_their_area_is_the_mean(scores: Array) -> None:
    # Integer scores make the area under the profile an exact sum: sum_{t >= 0} P(s > t) = E[s] for s >= 0.
    scores = np.floor(np.abs(scores) % 50)
    taus = np.arange(-1, 51)
    profile = metrics.performance_profile(scores, taus)
    assert profile[0] == 1
    assert profile[-1] == 0
    assert (np.diff(profile) <= 0).all()
    assert profile[1:].sum() == pytest.approx(metrics.mean(scores), abs=1e-9)


@given(matrices)
def test_leading_axes_are_replicates(scores: Array) -> None:
    """A stack of matrices gives the stack of results, which is what the bootstrap relies on."""
    stack = np.stack([scores, scores[::-1], 2 * scores])
    for statistic in metrics.STATISTICS.values():
        np.testing.assert_allclose(statistic(stack), [statistic(x) for x in stack], rtol=1e-12)
    taus = np.linspace(-1e6, 1e6, 5)
    expected = [metrics.performance_profile(x, taus) for x in stack]
    np.testing.assert_array_equal(metrics.performance_profile(stack, taus), expected)
    assert metrics.hwrb(stack, PAPER).tolist() == [int(metrics.hwrb(x, PAPER)) for x in stack]


@given(matrices)
def test_more_score_is_never_worse(scores: Array) -> None:
    better = scores + 1.0
    for criterion in metrics.CRITERIA.values():
        a, b = criterion(scores, PAPER), criterion(better, PAPER)
        for name in ("mean", "median", "iqm"):
            assert metrics.STATISTICS[name](b) >= metrics.STATISTICS[name](a) - 1e-9
        assert metrics.optimality_gap(b) <= metrics.optimality_gap(a) + 1e-9
    assert metrics.hwrb(better, PAPER) >= metrics.hwrb(scores, PAPER)


def test_one_score_of_one_game_is_normalized_by_that_games_own_numbers() -> None:
    """Breakout: random 1.7, human 30.5, record 864."""
    reference = load_reference("paper")
    assert metrics.normalize("breakout", 30.5, reference)["hns"] == pytest.approx(1.0)
    found = metrics.normalize("breakout", 16.1, reference)
    assert found["hns"] == pytest.approx((16.1 - 1.7) / (30.5 - 1.7))
    assert found["hwrns"] == found["saber"] == pytest.approx((16.1 - 1.7) / (864 - 1.7))
    assert metrics.normalize("breakout", 10_000.0, reference)["saber"] == 2.0
