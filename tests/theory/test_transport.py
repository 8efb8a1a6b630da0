from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from strategies import examples, few_levels, problems

from gdi.theory.as_printed import coupling_as_printed, lumped, obstruction
from gdi.theory.measures import TOLERANCE, Array, tilt
from gdi.theory.sampling import random_comonotone
from gdi.theory.transport import (
    coupling,
    coupling_errors,
    coupling_increasing,
    coupling_on_grid,
    quantile_coupling,
    transport_disagreement,
    unit_gains,
)

exponents = st.one_of(few_levels, st.floats(-700, 700), st.floats(-1e-6, 1e-6))


def test_two_points_by_hand() -> None:
    # μ = (1/2, 1/2), g = (0, log 3): β = (1/4, 3/4). A quarter must climb: γ = ((1/4, 1/4), (0, 1/2)).
    gamma = coupling_increasing([0.5, 0.5], [0.0, math.log(3)])
    np.testing.assert_allclose(gamma, [[0.25, 0.25], [0.0, 0.5]], atol=1e-15)


def test_three_points_follow_the_proof() -> None:
    """The two stages of the induction on μ = (1/3, 1/3, 1/3), exp(g) = (1, 2, 4), written out."""
    # Stage 1: μ_1 = (1/3, 2/3), β_1 = (1, 4)/5, Z_1 = 5/3.     γ_1 = ((1/5, 2/15), (0, 2/3)).
    # Stage 2: Z_2 = 7/3, r = 5/7, β_2 = (1, 2, 4)/7, b = 2/6.
    #   γ_2(0,0) = 5/7 · 1/5 = 1/7;   column = 5/7 · 2/15 + 2/7 · 1/3 = 4/21, shared 1 : 2;
    #   u = 2/3 · 1/3 = 2/9, v = 1/3 - 2/9 = 1/9, w = 1/3.
    expected = [[1 / 7, 4 / 63, 8 / 63], [0, 2 / 9, 1 / 9], [0, 0, 1 / 3]]
    np.testing.assert_allclose(coupling(np.full(3, 1 / 3), np.log([1.0, 2.0, 4.0])), expected, atol=1e-15)


@examples(problems(values=exponents))
def test_coupling_is_an_upper_triangular_transport(problem: tuple[Array, Array, Array]) -> None:
    mass, f, g = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gamma = coupling(mass, g)
    assert coupling_errors(gamma, mass, g).worst <= TOLERANCE
    assert transport_disagreement(gamma, mass, f, g) <= TOLERANCE * max(1.0, np.abs(f).max())


@examples(problems(values=exponents))
def test_no_unit_of_mass_loses_once_ties_are_ordered_by_f(problem: tuple[Array, Array, Array]) -> None:
    mass, f, g = problem
    gamma = coupling(mass, g, ties_by=f)
    assert coupling_errors(gamma, mass, g).worst <= TOLERANCE
    assert np.all(unit_gains(gamma, f) >= 0)  # term by term and exactly, not only in sum


def test_at_ties_a_unit_of_mass_may_lose() -> None:
    """The gap in the printed proof: the support condition allows moves between equal g, where f may fall."""
    mass, g, f = np.array([0.2, 0.3, 0.5]), np.array([0.0, 1.0, 1.0]), np.array([0.0, 2.0, 1.0])
    outer = np.outer([0.5, 0.5], [0.5, 0.5])
    assert coupling_errors(outer, np.array([0.5, 0.5]), np.zeros(2)).worst == 0
    assert unit_gains(outer, np.array([1.0, 0.0])).min() == -0.25
    assert unit_gains(coupling(mass, g, ties_by=f), f).min() >= 0


@examples(problems(values=exponents))
def test_the_quantile_coupling_is_one_too(problem: tuple[Array, Array, Array]) -> None:
    mass, _, g = problem
    assert coupling_errors(quantile_coupling(mass, g), mass, g).worst <= TOLERANCE


def test_one_point_and_point_masses() -> None:
    assert coupling([1.0], [5.0]).tolist() == [[1.0]]
    gamma = coupling([0.0, 1.0, 0.0], [2.0, 1.0, 0.0])
    assert gamma[1, 1] == 1.0
    assert gamma.sum() == 1.0


def test_equal_g_moves_nothing_in_total() -> None:
    mass = np.array([0.1, 0.2, 0.7])
    gamma = coupling(mass, np.zeros(3))
    np.testing.assert_allclose(gamma.sum(axis=0), mass, atol=1e-15)


def test_increasing_wants_increasing() -> None:
    with pytest.raises(ValueError, match="increasing"):
        coupling_increasing([0.5, 0.5], [1.0, 0.0])


@pytest.mark.parametrize(("side", "dimensions"), [(2, 2), (3, 2), (2, 3)])
def test_grids(side: int, dimensions: int) -> None:
    rng = np.random.default_rng(0)
    problem = random_comonotone(rng, 5, side**dimensions)
    shape = (5, *(side,) * dimensions)
    gamma = coupling_on_grid(problem.mass.reshape(shape), problem.g.reshape(shape), dimensions)
    assert gamma.shape == (*shape, *shape[1:])
    rows = gamma.sum(axis=tuple(range(1 + dimensions, 1 + 2 * dimensions)))
    np.testing.assert_allclose(rows, problem.mass.reshape(shape), atol=1e-14)
    columns = gamma.sum(axis=tuple(range(1, 1 + dimensions)))
    np.testing.assert_allclose(columns, tilt(problem.mass, problem.g).reshape(shape), atol=1e-14)


class TestNegativeControls:
    """The checker must see each way a transport can be wrong."""

    mass = np.array([0.3, 0.3, 0.4])
    g = np.array([0.0, 1.0, 2.0])

    def test_the_right_one_passes(self) -> None:
        assert coupling_errors(coupling(self.mass, self.g), self.mass, self.g).worst < 1e-15

    def test_transposed(self) -> None:
        errors = coupling_errors(coupling(self.mass, self.g).T, self.mass, self.g)
        assert errors.rows > 0.1
        assert errors.columns > 0.1
        assert errors.support > 0.01

    def test_independent_coupling_has_the_marginals_but_not_the_support(self) -> None:
        errors = coupling_errors(np.outer(self.mass, tilt(self.mass, self.g)), self.mass, self.g)
        assert max(errors.rows, errors.columns) < 1e-15
        assert errors.support == pytest.approx(0.4 * tilt(self.mass, self.g)[1])

    def test_negative_mass(self) -> None:
        gamma = coupling(self.mass, self.g)
        gamma[0, 1:] += [-1.0, 1.0]
        gamma[1, 1:] += [1.0, -1.0]
        errors = coupling_errors(gamma, self.mass, self.g)
        assert max(errors.rows, errors.columns) < 1e-15
        assert errors.negative > 0.5

    def test_wrong_tilt(self) -> None:
        assert coupling_errors(coupling(self.mass, 2 * self.g), self.mass, self.g).columns > 0.05


class TestAsPrinted:
    """The induction of lemma:dct_R1 to the letter."""

    def test_lumps(self) -> None:
        # Known: 1 and 3. Point 1 holds what lies left of it too (0.1 + 0.2) and 2; point 3 holds itself and 4.
        mass = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
        np.testing.assert_allclose(lumped(mass, [3, 1]), [0.0, 0.6, 0.0, 0.4, 0.0])

    def test_it_is_right_where_lemma_1_is(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(20):
            mass, g = rng.dirichlet(np.ones(5)), np.sort(rng.normal(size=5))
            np.testing.assert_allclose(coupling_as_printed(mass, g), coupling(mass, g), atol=1e-12)

    def test_it_breaks_at_three_points(self) -> None:
        mass, g = np.array([0.1, 0.2, 0.7]), np.array([0.0, 2.0, 1.0])
        gamma = coupling_as_printed(mass, g)
        errors = coupling_errors(gamma, mass, g)
        assert errors.rows > 0.1
        assert errors.support > 0.01
        row = obstruction(mass, g)
        assert row is not None
        # By hand: μ_1 = (0.3, ., 0.7), Z_1 = 0.3 + 0.7e, Z_2 = 0.1 + 0.2e² + 0.7e, forced = Z_1/Z_2 · (0.3 - 0.3/Z_1).
        z1, z2 = 0.3 + 0.7 * math.e, 0.1 + 0.2 * math.e**2 + 0.7 * math.e
        assert row == pytest.approx((z1 / z2 * (0.3 - 0.3 / z1), 0.1))
        assert row[0] > row[1]

    def test_no_obstruction_where_the_step_is_right(self) -> None:
        assert obstruction(np.array([0.2, 0.3, 0.5]), np.array([0.0, 1.0, 2.0])) is None
        with pytest.raises(ValueError, match="three points"):
            obstruction(np.array([0.5, 0.5]), np.array([0.0, 1.0]))

    def test_ties_lose_mass_and_can_be_mended(self) -> None:
        mass, g = np.array([0.5, 0.5]), np.zeros(2)
        assert coupling_as_printed(mass, g).sum() == 0.5
        mended = coupling_as_printed(mass, g, fix_ties=True)
        assert coupling_errors(mended, mass, g).worst < 1e-15
