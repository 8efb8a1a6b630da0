"""What one number over runs hides: what the IQM trims, divisors, seeds as blocks, and preferences that cancel."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.minatar_sweep import fairness, preferences
from benchmarks.minatar_sweep.agents import GAMES
from benchmarks.minatar_sweep.records import LAMBDA_COLUMNS, Row

from gdi.scores import metrics
from gdi.scores.runs import Run, estimate


def run(agent: str, game: str, seed: int, score: float) -> Run:
    steps = np.array([1000.0])
    return Run(agent, game, seed, 1000, steps, np.array([score]), steps)


def test_the_kept_runs_are_those_of_the_iqm() -> None:
    scores = np.array([[0.1, 5.0, 1.0], [0.2, 6.0, 2.0], [0.3, np.nan, 3.0]])  # 8 runs: 2 are dropped at each end
    assert fairness.kept_runs(scores).tolist() == [1, 0, 3]
    assert metrics.iqm(scores) == pytest.approx(np.mean([0.3, 1.0, 2.0, 3.0]))


def test_ties_at_the_cut_keep_half_of_the_runs() -> None:
    assert fairness.kept_runs(np.ones((4, 2))).sum() == 4


def test_the_order_by_the_geometric_mean_does_not_depend_on_the_divisor() -> None:
    rng = np.random.default_rng(0)
    a, b, divisor = rng.uniform(1, 9, (3, 5)), rng.uniform(1, 9, (4, 5)), rng.uniform(1, 9, 5)
    ratio = fairness.geometric_mean(a) / fairness.geometric_mean(b)
    assert fairness.geometric_mean(a / divisor) / fairness.geometric_mean(b / divisor) == pytest.approx(ratio)
    assert fairness.geometric_mean(np.array([[2.0, 8.0], [2.0, 8.0]])) == pytest.approx(4.0)
    assert fairness.geometric_mean(np.array([[0.0, 8.0]])) == 0.0


def test_blocks_widen_the_interval_if_a_good_seed_is_good_in_every_game() -> None:
    scores = np.tile(np.arange(5.0)[:, None], (1, 20))
    low, high = fairness.block_interval(scores, np.random.default_rng(0))
    by_game = estimate(metrics.iqm, scores)
    assert high - low > 1.5 * (by_game.high - by_game.low)


def test_equal_seeds_have_an_interval_without_width() -> None:
    scores = np.array([[1.0, 2.0, np.nan, 4.0]] * 3)
    low, high = fairness.block_interval(scores, np.random.default_rng(0))
    assert low == high == pytest.approx(float(metrics.iqm(scores)))


def test_a_missing_run_keeps_its_place_in_the_row_of_its_seed() -> None:
    runs = [run("dqn", GAMES[0], seed, seed) for seed in (1, 2)] + [run("dqn", GAMES[1], 2, 20.0)]
    matrix = fairness.seed_matrix(runs, "dqn", GAMES[:2])
    np.testing.assert_array_equal(matrix, [[1.0, np.nan], [2.0, 20.0]])


def test_every_agent_has_a_row_and_a_missing_peer_is_said() -> None:
    runs = [
        run(agent, game, seed, 2.0 + seed) for agent in ("dqn", "ppo", "gdi-i3") for game in GAMES for seed in (1, 2)
    ]
    assert fairness.choices(runs).count("\n| ") == 2 + 3
    assert "1.00 | 1.00 | 1.00 | 1.00 | 1.00" in fairness.choices(runs)
    assert "need a score above 0" in fairness.choices([one for one in runs if one.agent != "ppo"])


def proposals(seed: int, *means: float, top: str = "0.25") -> list[Row]:
    """Log lines from 100,000 steps on, of which the first is too early."""
    row = dict.fromkeys(LAMBDA_COLUMNS, "") | {"agent": "gdi-i3", "game": "Asterix", "seed": str(seed)}
    values = {"top_probability_epsilon": top}
    return [
        {**row, **values, "steps": str(100_000 * (i + 1)), "mean_epsilon": str(mean)} for i, mean in enumerate(means)
    ]


def test_opposite_preferences_of_runs_are_counted_and_do_not_cancel() -> None:
    rows = [
        *proposals(2, 0.9, 0.1, 0.2, 0.3, 0.6),  # three of four lines are small
        *proposals(0, 0.1, 0.9, 0.8, 0.7, 0.8),
        *proposals(1, 0.1, 0.2, 0.8, 0.2, 0.8, top="0.4"),
    ]
    text = preferences.epsilon(rows)
    assert "| GDI-I3 | Asterix | 0.80, 0.50, 0.30 | 1 of 3 | 1 of 3 | 1 of 3 | 0.43 | 0.30 |" in text


def test_agents_that_hold_epsilon_have_no_line() -> None:
    assert "|" not in preferences.epsilon(proposals(0, 1.0, 1.0, 1.0, top=""))
