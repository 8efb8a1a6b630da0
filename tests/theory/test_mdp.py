from __future__ import annotations

import numpy as np
import pytest

from gdi.theory.mdp import (
    FiniteMDP,
    action_values,
    advantages,
    expected_return,
    performance_difference,
    random_mdp,
    random_policy,
    state_values,
    visitation,
)
from gdi.theory.policies import (
    Indices,
    fisher,
    jacobian,
    natural_direction,
    policy,
    return_gradients,
    returns,
)


def two_state(discount: float = 0.5) -> FiniteMDP:
    """State 0: action 0 stays and pays 1, action 1 goes to 1 and pays 0. State 1: both stay and pay 4."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0, 0] = transition[0, 1, 1] = transition[1, :, 1] = 1.0
    return FiniteMDP(transition, np.array([[1.0, 0.0], [4.0, 4.0]]), np.asarray(discount), np.array([1.0, 0.0]))


def test_values_by_hand() -> None:
    mdp = two_state()
    stay, go = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    # stay: 1/(1-1/2) = 2;  in state 1: 4/(1-1/2) = 8;  go: 0 + 1/2 · 8 = 4.
    np.testing.assert_allclose(state_values(mdp, stay), [2.0, 8.0])
    np.testing.assert_allclose(state_values(mdp, go), [4.0, 8.0])
    np.testing.assert_allclose(action_values(mdp, stay), [[1 + 0.5 * 2, 0.5 * 8], [8.0, 8.0]])
    np.testing.assert_allclose(advantages(mdp, stay), [[0.0, 2.0], [0.0, 0.0]])
    # go: half of the discounted time (1-γ)·1 in state 0, the rest in 1.
    np.testing.assert_allclose(visitation(mdp, go), [0.5, 0.5])
    assert expected_return(mdp, go) == pytest.approx(4.0)


def test_visitation_is_the_discounted_series() -> None:
    rng = np.random.default_rng(0)
    mdp, acting = random_mdp(rng, 1, 3, 2), random_policy(rng, 1, 3, 2)
    chain = np.einsum("bsa,bsat->bst", acting, mdp.transition)[0]
    rho, series = mdp.start[0], np.zeros(3)
    for time in range(6000):
        series += (1 - mdp.discount[0]) * mdp.discount[0] ** time * rho
        rho = rho @ chain
    np.testing.assert_allclose(visitation(mdp, acting)[0], series, atol=1e-12)


def test_performance_difference_by_hand_and_negative_control() -> None:
    mdp = two_state()
    stay, go = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    left, right = performance_difference(mdp, go, stay)
    np.testing.assert_allclose(left, [4 - 2, 0])
    np.testing.assert_allclose(right, left)
    # With the advantages of the wrong policy the lemma fails: E_{d^π, π}[A^π] is zero.
    wrong = np.sum(visitation(mdp, go) * np.sum(go * advantages(mdp, go), axis=-1)) / 0.5
    assert abs(wrong - left[0]) > 1.9


def test_bad_mdps_are_refused() -> None:
    good = two_state()
    with pytest.raises(ValueError, match="discount"):
        FiniteMDP(good.transition, good.reward, np.asarray(1.0), good.start)
    with pytest.raises(ValueError, match="transition"):
        FiniteMDP(good.transition * 2, good.reward, good.discount, good.start)
    with pytest.raises(ValueError, match="start"):
        FiniteMDP(good.transition, good.reward, good.discount, np.array([1.5, -0.5]))
    with pytest.raises(ValueError, match="epsilon"):
        Indices(np.zeros(1), np.zeros(1), np.array([1.5]))


def test_policy_is_the_soft_epsilon_mixture() -> None:
    theta = np.log([[[1.0, 3.0], [4.0, 1.0]]])  # one state, two families: softmax(1/4, 3/4) and (4/5, 1/5)
    index = Indices(np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([0.4, 0.5]))
    expected = [
        [0.4 * 0.25 + 0.6 * 0.8, 0.4 * 0.75 + 0.6 * 0.2],
        [0.5 * 0.5 + 0.5 * 0.8, 0.5 * 0.5 + 0.5 * 0.2],  # u1 = 0 is uniform
    ]
    np.testing.assert_allclose(policy(theta, index)[:, 0], expected)
    # One family: both components read the same logits.
    single = policy(theta[:, :1], index)[:, 0]
    np.testing.assert_allclose(single[0], [0.25, 0.75])


@pytest.mark.parametrize("families", [1, 2])
def test_gradients_against_finite_differences(families: int) -> None:
    rng = np.random.default_rng(families)
    mdp = FiniteMDP(*(part[0] for part in _parts(random_mdp(rng, 1, 3, 2))))
    theta = rng.normal(size=(3, families, 2))
    index = Indices(np.array([1.0, 3.0]), np.array([0.5, 2.0]), np.array([0.3, 0.8]))
    gradient, slopes = return_gradients(mdp, theta, index), jacobian(theta, index)
    for place in np.ndindex(theta.shape):
        up, down = theta.copy(), theta.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        numeric = (returns(mdp, up, index) - returns(mdp, down, index)) / 2e-6
        np.testing.assert_allclose(gradient[(slice(None), *place)], numeric, atol=1e-5, rtol=1e-5)
        moved = (policy(up, index) - policy(down, index)) / 2e-6
        state, family, action = place
        np.testing.assert_allclose(slopes[:, state, :, family, action], moved[:, state], atol=1e-8)


def test_a_saturated_softmax_keeps_the_digits_of_its_slope() -> None:
    # p = 1/(1+e^-40): the slope p(1-p) is e^-40 to many digits, though 1-p in floating point is 0.
    slope = jacobian(np.array([[[40.0, 0.0]]]), Indices.temperatures(1.0))
    assert slope[0, 0, 0, 0, 0] == pytest.approx(np.exp(-40.0), rel=1e-12)


def test_natural_direction_is_the_advantage() -> None:
    rng = np.random.default_rng(3)
    mdp, theta, index = two_state(0.9), rng.normal(size=(2, 1, 2)), Indices.temperatures(1.0)
    moved = natural_direction(fisher(mdp, theta, index), return_gradients(mdp, theta, index))[0, :, 0]
    lead = advantages(mdp, policy(theta, index)[0]) / (1 - 0.9)
    np.testing.assert_allclose(moved[:, 1] - moved[:, 0], lead[:, 1] - lead[:, 0], rtol=1e-10)


def test_natural_direction_of_an_unvisited_state_is_zero() -> None:
    mdp = two_state()
    theta = np.array([[[2000.0, 0.0]], [[0.0, 1.0]]])  # never leaves state 0
    index = Indices.temperatures(1.0)
    moved = natural_direction(fisher(mdp, theta, index), return_gradients(mdp, theta, index))
    assert np.all(np.isfinite(moved))
    assert np.all(moved[0, 1] == 0)


def _parts(mdp: FiniteMDP) -> tuple[np.ndarray, ...]:
    return mdp.transition, mdp.reward, mdp.discount, mdp.start
