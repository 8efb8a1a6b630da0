from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from strategies import examples, few_levels, masses, problems, wild

from gdi.theory.measures import (
    TOLERANCE,
    Array,
    co_monotone,
    covariance_gain,
    kl_divergence,
    mean,
    mean_gain,
    scale_of,
    tilt,
)


def test_tilt_by_hand() -> None:
    # weights 1/2 e^0, 1/2 e^1, so β = 1/(1+e), e/(1+e)
    np.testing.assert_allclose(tilt([0.5, 0.5], [0.0, 1.0]), [1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-15)
    # η = log 3 triples the second weight: (1/4, 3/4 · 3) / (1/4 + 9/4)
    np.testing.assert_allclose(tilt([0.25, 0.75], [0.0, 1.0], math.log(3)), [0.1, 0.9], rtol=1e-15)


def test_tilt_takes_one_rate_per_instance() -> None:
    both = tilt(np.full((2, 2), 0.5), np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, math.log(9)]))
    np.testing.assert_allclose(both, [[0.5, 0.5], [0.1, 0.9]], rtol=1e-14)


@pytest.mark.parametrize("eta", [1e3, 1e100, 1e308])
def test_huge_rates_become_a_point_mass_without_overflow(eta: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tilt([0.2, 0.3, 0.5], [1.0, 3.0, 2.0], eta).tolist() == [0.0, 1.0, 0.0]
        # Ties at the top share in the proportion of their masses; a better point of zero mass gets nothing.
        np.testing.assert_allclose(tilt([0.2, 0.6, 0.2, 0.0], [3.0, 3.0, 2.0, 9.0], eta), [0.25, 0.75, 0.0, 0.0])
        assert tilt([0.2, 0.3, 0.5], [1.0, 3.0, 2.0], -eta).tolist() == [1.0, 0.0, 0.0]


@examples(problems(values=wild), st.sampled_from([0.0, 1e-9, 1.0, 1e6, 1e308]))
def test_tilt_is_a_probability_on_the_same_support(problem: tuple[Array, Array, Array], eta: float) -> None:
    mass, _, g = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = tilt(mass, g, eta)
    assert np.all(np.isfinite(after))
    assert np.all(after >= 0)
    assert after.sum() == pytest.approx(1.0, abs=1e-14)
    assert np.all(after[mass == 0] == 0)


@examples(problems())
def test_tilt_ignores_a_constant(problem: tuple[Array, Array, Array]) -> None:
    mass, _, g = problem
    np.testing.assert_allclose(tilt(mass, g + 3.0), tilt(mass, g), atol=1e-12)


@examples(problems(values=st.one_of(few_levels, st.floats(-700, 700))))
def test_the_inequality_and_its_covariance(problem: tuple[Array, Array, Array]) -> None:
    """lemma:dct_R1 on adversarial inputs: zero masses, ties, one point, exponents up to 1400."""
    mass, f, g = problem
    assert co_monotone(f, g)
    gain = mean_gain(mass, tilt(mass, g), f) / scale_of(f)
    assert gain >= -TOLERANCE
    assert covariance_gain(mass, f, g) >= 0  # a sum of non-negative terms: exactly, not to rounding
    assert gain == pytest.approx(covariance_gain(mass, f, g) / scale_of(f), abs=TOLERANCE)


@examples(problems())
def test_reversing_f_reverses_the_inequality(problem: tuple[Array, Array, Array]) -> None:
    """Negative control: the check can come out the other way."""
    mass, f, g = problem
    assert mean_gain(mass, tilt(mass, g), -f) / scale_of(f) <= TOLERANCE
    if np.ptp(f[mass > 1e-3]) > 0.5 and np.array_equal(np.sign(np.diff(np.sort(f))), np.sign(np.diff(np.sort(g)))):
        assert mean_gain(mass, tilt(mass, g), -f) <= 0


def test_mean_gain_keeps_its_digits_under_a_large_offset() -> None:
    mass, f, g = np.array([0.25, 0.75]), np.array([0.0, 1.0]), np.array([0.0, 1.0])
    exact = 0.75 * math.e / (0.25 + 0.75 * math.e) - 0.75
    assert mean_gain(mass, tilt(mass, g), f + 2.0**30) == pytest.approx(exact, rel=1e-6)


def test_co_monotone_sees_sign_not_size() -> None:
    assert co_monotone(np.array([0.0, 1e-200]), np.array([0.0, 1e-200]))
    assert not co_monotone(np.array([1e-200, 0.0]), np.array([0.0, 1e-200]))  # the product underflows to zero
    assert co_monotone(np.array([1.0, 1.0, 2.0]), np.array([5.0, 3.0, 5.0]))


@examples(st.integers(1, 6).flatmap(lambda n: st.tuples(masses(n), masses(n))))
def test_kl_divergence(pair: tuple[Array, Array]) -> None:
    q, p = pair
    assert kl_divergence(q, q) == 0
    assert kl_divergence(q, p) >= -1e-15
    assert np.isinf(kl_divergence(q, p)) == bool(np.any((q > 0) & (p == 0)))


def test_mean() -> None:
    assert mean(np.array([0.25, 0.75]), np.array([4.0, 8.0])) == 0.25 * 4 + 0.75 * 8
