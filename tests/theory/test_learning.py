from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gdi.theory.learning import clipped, compare, corridor, helps, iterate, trap
from gdi.theory.mdp import expected_return, state_values
from gdi.theory.measures import TOLERANCE
from gdi.theory.operators import identity, improve, reweight
from gdi.theory.policies import returns
from gdi.theory.report import EXPECTED, expected, learning_settings, outcome


def test_corridor_by_hand() -> None:
    mdp = corridor(length=8, start=2, lure=1.0, prize=5.0, discount=0.95)
    left, right = np.zeros((9, 2)), np.zeros((9, 2))
    left[:, 0] = right[:, 1] = 1.0
    # Three steps left out of cell 2: 0.95². Six steps right out of cell 7: 5 · 0.95⁵.
    assert expected_return(mdp, left) == pytest.approx(0.95**2)
    assert expected_return(mdp, right) == pytest.approx(5 * 0.95**5)
    assert state_values(mdp, right)[8] == 0


def test_one_iteration_is_algorithm_1() -> None:
    """θ(t+1) and P(t+1) both come from θ(t) and P(t), in this order of arguments."""
    setting = replace(helps(), iterations=1)
    run, without = iterate(setting, (reweight, identity))
    third = np.full(3, 1 / 3)
    values = returns(setting.mdp, setting.theta, setting.index)
    theta = improve(setting.mdp, setting.theta, setting.index, third, setting.step)
    following = reweight(third, values, setting.eta)
    np.testing.assert_allclose(run.weights, [third, following])
    np.testing.assert_allclose(run.target, [values.mean(), following @ returns(setting.mdp, theta, setting.index)])
    # T is the same with and without E in the first iteration; only P differs.
    assert without.best[1] == run.best[1]
    assert without.target[1] != run.target[1]


def test_without_e_the_distribution_never_moves() -> None:
    (run,) = iterate(replace(helps(), iterations=5), (identity,))
    assert np.all(run.weights == 1 / 3)


def test_e_helps() -> None:
    run = compare(helps())
    assert outcome(run) == expected(run.setting) == "wins"
    assert np.all(run.with_e.assumption_3)
    assert np.all(run.with_e.frozen_gain >= -TOLERANCE)
    target, best = run.advantage()
    assert target > 0.5
    assert best > 0.1
    # It explores first and exploits in the end.
    assert run.with_e.weights[50].argmax() == 2
    assert run.with_e.weights[-1].argmax() == 0


def test_clipped_rewards_break_assumption_3_and_e_loses() -> None:
    run = compare(clipped())
    assert outcome(run) == expected(run.setting) == "loses"
    assert not run.with_e.assumption_3[0]
    assert run.with_e.frozen_gain.min() < -1e-3  # the theorem's inequality itself fails
    assert run.with_e.best[-1] < 1.0 < 3.5 < run.without_e.best[-1]


def test_the_trap_springs_though_every_assumption_holds() -> None:
    run = compare(trap())
    assert outcome(run) == expected(run.setting) == "loses"
    assert np.all(run.with_e.assumption_3)
    assert np.all(run.with_e.frozen_gain >= 0)
    assert run.with_e.best[-1] < 1.5 < 3.5 < run.without_e.best[-1]


def test_natural_gradient_escapes_the_trap() -> None:
    setting = replace(trap(), natural=True, step=0.005, iterations=120)
    assert iterate(setting, (reweight,))[0].target[-1] > 3.5


def test_expectations_cover_the_settings() -> None:
    assert {(s.name, s.natural) for s in learning_settings()} == set(EXPECTED)
