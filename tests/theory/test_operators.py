from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import examples, problems

from gdi.theory.measures import Array, co_monotone, mean, mean_gain
from gdi.theory.operators import (
    identity,
    improve,
    improve_natural,
    kl_gap,
    kl_objective,
    project_to_simplex,
    reweight,
    reweight_by_natural_gradient,
    reweight_by_projected_gradient,
    reweight_by_softmax_gradient,
    softmax_fisher,
    softmax_gradient,
)
from gdi.theory.policies import Indices, returns
from gdi.theory.search import two_armed


@pytest.mark.parametrize("eta", [0.3, 1.0, 4.0])
def test_e_three_ways(eta: float) -> None:
    """asp:2, the KL-regularised optimum found by a general solver, and the softmax natural gradient agree."""
    prior, value = np.array([0.2, 0.5, 0.3]), np.array([1.0, -0.5, 0.25])
    closed = reweight(prior, value, eta)
    solved = minimize(
        lambda p: -float(kl_objective(np.abs(p), prior, value, eta)),
        prior,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
        bounds=[(1e-9, 1.0)] * 3,
        tol=1e-14,
    )
    np.testing.assert_allclose(solved.x, closed, atol=1e-5)
    np.testing.assert_allclose(reweight_by_natural_gradient(prior, value, eta), closed, atol=1e-13)


def test_the_printed_kl_weight_has_another_optimum() -> None:
    prior, value, eta = np.array([0.5, 0.5]), np.array([0.0, 1.0]), 2.0
    # E[r] - η KL is maximal at P exp(r/η): by calculus p = 1/(1 + e^-1/2), not 1/(1 + e^-2).
    best = max(
        np.linspace(0.01, 0.99, 9801), key=lambda p: float(kl_objective(np.array([1 - p, p]), prior, value, 1 / eta))
    )
    assert best == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-3)


@examples(problems(), st.floats(0.01, 100))
def test_the_gap_to_the_optimum_is_a_divergence(problem: tuple[Array, Array, Array], eta: float) -> None:
    prior, other, value = problem
    # The logarithm of a probability below the smallest normal number has no digits to compare.
    assume(reweight(prior, value, eta)[prior > 0].min() > 1e-290)
    gap, divergence = kl_gap(reweight(prior, other, 1.0), prior, value, eta)
    assert gap == pytest.approx(divergence, rel=1e-9, abs=1e-9 * (np.abs(value).max() + 1 / eta))
    assert gap >= -1e-9 * (np.abs(value).max() + 1 / eta)


def test_softmax_gradient_and_fisher_by_differences() -> None:
    phi, value = np.array([0.3, -0.2, 1.0]), np.array([2.0, 1.0, -1.0])
    prior = np.exp(phi) / np.exp(phi).sum()

    def objective(p: Array) -> float:
        return float(np.exp(p) @ value / np.exp(p).sum())

    numeric = [(objective(phi + d) - objective(phi - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(softmax_gradient(prior, value), numeric, atol=1e-9)
    score = np.eye(3) - prior  # ∇ log P(i)
    np.testing.assert_allclose(softmax_fisher(prior), np.einsum("i,ij,ik->jk", prior, score, score), atol=1e-15)


@examples(problems())
def test_projection_is_the_nearest_distribution(problem: tuple[Array, Array, Array]) -> None:
    mass, point, _ = problem
    nearest = project_to_simplex(point)
    assert nearest.sum() == pytest.approx(1.0, abs=1e-12 * (1 + np.abs(point).max()))
    assert np.all(nearest >= 0)
    # Variational inequality of a projection: no feasible direction makes an acute angle with what was cut off.
    assert (point - nearest) @ (mass - nearest) <= 1e-9 * (1 + np.abs(point).max() ** 2)


@examples(problems(), st.floats(1e-3, 1e3))
def test_projected_gradient_keeps_theorem_1(problem: tuple[Array, Array, Array], eta: float) -> None:
    mass, f, g = problem
    after = reweight_by_projected_gradient(mass, g, eta)
    assert mean_gain(mass, after, f) >= -1e-11 * (1 + np.abs(f).max())


def test_softmax_gradient_breaks_theorem_1() -> None:
    """A rare good index loses to a common one of equal L_E."""
    prior, g, f = np.array([0.25, 0.25, 0.5]), np.array([0.0, 2.0, 2.0]), np.array([0.0, 1.0, 0.0])
    assert co_monotone(f, g)
    assert mean_gain(prior, reweight_by_softmax_gradient(prior, g, 4.0), f) < -0.02
    assert mean_gain(prior, reweight(prior, g, 4.0), f) > 0


def test_identity() -> None:
    prior = np.array([0.2, 0.8])
    assert identity(prior, np.array([5.0, -5.0]), 3.0) is prior


def test_t_climbs_and_natural_t_climbs_faster_on_a_plateau() -> None:
    mdp, index = two_armed((1.0,))
    theta, weights = np.array([[[4.0, 0.0]]]), np.ones(1)  # nearly always the worse arm
    before = returns(mdp, theta, index)
    plain = returns(mdp, improve(mdp, theta, index, weights, 0.5), index)
    natural = returns(mdp, improve_natural(mdp, theta, index, weights, 0.5), index)
    assert before[0] < plain[0] < natural[0]


def test_t_by_hand() -> None:
    # One state, rewards 0 and 1, logits 0: J' = u/4 for logit 1 and -u/4 for logit 0, averaged over u = 0 and 2.
    mdp, index = two_armed((0.0, 2.0))
    moved = improve(mdp, np.zeros((1, 1, 2)), index, np.array([0.5, 0.5]), 1.0)
    np.testing.assert_allclose(moved, [[[-0.25, 0.25]]])
    assert mean(np.array([0.5, 0.5]), returns(mdp, moved, index)) > 0.5


def test_indices_helpers() -> None:
    index = Indices.explorers(0.0, 0.5, u=3.0)
    assert index.u2.tolist() == [3.0, 3.0]
    assert index.epsilon.tolist() == [0.0, 0.5]
