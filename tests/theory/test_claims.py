from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gdi.theory import claims, transport
from gdi.theory.claims import CLAIMS, Claim
from gdi.theory.mdp import random_mdp
from gdi.theory.measures import Array, co_monotone, mean_gain, scale_of, tilt
from gdi.theory.monotonicity import improvement_rates, per_index_returns, per_index_step, suggested_value, target_gain
from gdi.theory.policies import Indices
from gdi.theory.sampling import batches, random_comonotone, random_mass, random_unrelated
from gdi.theory.search import two_armed


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_claim_holds_on_random_instances(claim: Claim) -> None:
    verdict = claim.check(np.random.default_rng(7), 400)
    assert verdict.instances == 400
    assert verdict.holds, verdict
    if not claim.identity:
        assert verdict.strict is not None
        assert verdict.strict > 0.5  # not vacuous: most instances gain


def test_keys_are_unique() -> None:
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)


def test_the_seed_matters_and_repeats() -> None:
    claim = next(claim for claim in CLAIMS if claim.key == "theorem-r1")
    worst = [claim.check(np.random.default_rng(seed), 50).worst for seed in (0, 0, 1)]
    assert worst[0] == worst[1] != worst[2]


class TestNegativeControls:
    """A wrong operator, a wrong transport or a dropped assumption must come out as a violation."""

    def test_unrelated_functions_violate(self) -> None:
        def margins(rng: np.random.Generator, trials: int) -> Iterator[Array]:
            p = random_unrelated(rng, trials, 3)
            yield mean_gain(p.mass, tilt(p.mass, p.g), p.f) / scale_of(p.f)

        assert not Claim("x", "", "", margins).check(np.random.default_rng(0), 50).holds

    def test_nan_is_a_violation(self) -> None:
        assert (
            not Claim("x", "", "", lambda rng, n: iter([np.array([0.0, np.nan])]))
            .check(np.random.default_rng(0), 2)
            .holds
        )

    def test_an_e_of_the_wrong_sign_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(claims, "tilt", lambda mass, g, eta=1.0: tilt(mass, g, -np.asarray(eta)))
        assert not _check("lemma-2").holds

    def test_a_forgetful_e_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """softmax(ηr) instead of P exp(ηr)/Z: the prior is lost."""
        monkeypatch.setattr(
            claims, "reweight", lambda prior, value, eta: tilt(np.full_like(prior, 1 / prior.shape[-1]), value, eta)
        )
        assert not _check("theorem-1-iterated").holds
        assert not _check("e-natural").holds

    def test_a_transport_with_a_wrong_share_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def halves(mass: Array, g: Array, ties_by: Array | None = None) -> Array:
            gamma = transport.coupling(mass, g, ties_by)
            return 0.5 * (gamma + np.eye(mass.shape[-1]) * mass[..., None, :])

        monkeypatch.setattr(claims, "coupling", halves)
        assert not _check("lemma-1-transport").holds
        assert not _check("lemma-2-transport").holds

    def test_a_wrong_discount_in_the_lemma_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = claims.performance_difference
        monkeypatch.setattr(
            claims, "performance_difference", lambda m, a, b: (right(m, a, b)[0], right(m, a, b)[1] * 1.001)
        )
        assert not _check("performance-difference").holds


def _check(key: str) -> claims.Verdict:
    return next(claim for claim in CLAIMS if claim.key == key).check(np.random.default_rng(0), 200)


class TestSampling:
    def test_batches_add_up(self) -> None:
        for trials in (1, 5, 12, 13, 10_000):
            split = list(batches(trials, tuple(range(1, 13)), largest=300))
            assert sum(count for _, count in split) == trials
            assert max(count for _, count in split) <= 300

    def test_masses_are_probabilities_and_some_are_degenerate(self) -> None:
        mass = random_mass(np.random.default_rng(0), 2000, 4)
        np.testing.assert_allclose(mass.sum(axis=-1), 1.0, atol=1e-14)
        assert np.any(mass == 0)
        assert np.any(mass.max(axis=-1) == 1.0)

    def test_comonotone_instances_are_and_have_ties(self) -> None:
        p = random_comonotone(np.random.default_rng(0), 500, 6)
        assert np.all(co_monotone(p.f, p.g))
        for row in (p.f, p.g):
            assert np.any(np.diff(np.sort(row, axis=-1), axis=-1) == 0)
        assert np.abs(p.g).max() > 1e3


class TestTheoremsOnMDPs:
    def test_target_gain_by_hand(self) -> None:
        # P = (1/2, 1/2), L_E = (0, 1), η = log 3: P' = (1/4, 3/4); L_T = (2, 6): 0.25·2 + 0.75·6 - 4 = 1.
        half = np.array([0.5, 0.5])
        assert target_gain(half, np.array([0.0, 1.0]), np.array([2.0, 6.0]), np.log(3)) == pytest.approx(1.0)

    def test_improvement_rate_tends_to_the_squared_gradient(self) -> None:
        mdp, index = two_armed((1.0, 2.0))
        thetas = np.full((2, 1, 1, 2), [0.0, 0.5])
        squared = np.sum(per_index_step(mdp, thetas, index, natural=False) ** 2, axis=(-3, -2, -1))
        np.testing.assert_allclose(improvement_rates(mdp, thetas, index, 1e-5), squared, rtol=1e-4)

    def test_each_index_has_its_own_theta(self) -> None:
        mdp, index = two_armed((1.0, 1.0))
        thetas = np.stack([np.array([[[0.0, np.log(3)]]]), np.array([[[0.0, 0.0]]])])
        np.testing.assert_allclose(per_index_returns(mdp, thetas, index), [0.75, 0.5])

    def test_suggested_value_follows_the_natural_step_not_the_plain_one(self) -> None:
        """The remark after thm:2nd_gdi: L_E/ε is (1-γ) times the rate of a natural step of size (1-γ)."""
        rng = np.random.default_rng(0)
        mdp = random_mdp(rng, 50, 3, 3)
        index = Indices(*(np.full((50, 1), v) for v in (1.0, 0.0, 1.0)))
        thetas = rng.normal(size=(50, 1, 3, 1, 3))
        value = suggested_value(mdp, thetas, index, 1e-6) / 1e-6
        rate = np.sum(
            per_index_step(mdp, thetas, index, True) * per_index_step(mdp, thetas, index, False), axis=(-3, -2, -1)
        )
        np.testing.assert_allclose(value[:, 0], rate[:, 0] * (1 - mdp.discount) ** 2, rtol=1e-4, atol=1e-9)
