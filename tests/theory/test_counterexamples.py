"""Each search finds its example, and the example is checked again here with plain arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gdi.theory import counterexamples, paper_errors, search
from gdi.theory.operators import reweight
from gdi.theory.search import CLEAR_MARGIN, Counterexample, NotFoundError, first_failure, simplices

SEARCHES = {**counterexamples.SEARCHES, **paper_errors.SEARCHES}


@pytest.fixture(scope="module")
def found() -> dict[str, Counterexample]:
    return {key: look(np.random.default_rng(3), 500) for key, look in SEARCHES.items()}


@pytest.mark.parametrize("key", SEARCHES)
def test_found_and_frequent(found: dict[str, Counterexample], key: str) -> None:
    one = found[key]
    assert one.margin < -CLEAR_MARGIN
    assert one.searched >= 1
    assert 0 < one.rate <= 1
    assert one.instances == 500


def test_the_random_rates_follow_the_seed() -> None:
    look = counterexamples.without_comonotonicity
    rates = [look(np.random.default_rng(seed), 500).rate for seed in (0, 0, 1)]
    assert rates[0] == rates[1] != rates[2]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def tilted(mass: list[float], value: list[float], eta: float) -> list[float]:
    weight = [m * math.exp(eta * v) for m, v in zip(mass, value, strict=True)]
    return [w / sum(weight) for w in weight]


def test_without_comonotonicity_two_points_suffice(found: dict[str, Counterexample]) -> None:
    example = found["asp-3-dropped"].example
    assert example["P"] == [0.5, 0.5]
    after = tilted(example["P"], example["L_E"], example["eta"])
    left = sum(p * v for p, v in zip(after, example["L_T"], strict=True))
    assert found["asp-3-dropped"].left == pytest.approx(left)
    assert left < 0.5 == found["asp-3-dropped"].right


def test_moving_theta_by_hand(found: dict[str, Counterexample]) -> None:
    """One state, rewards 0 and 1, J_u = σ(u x): recomputed with the exact gradient written out."""
    one = found["theorem-1-moving-theta"]
    u, (low, high), step, eta = (one.example[k] for k in ("u = 1/tau of the indices", "logits(t)", "step of T", "eta"))
    before = [sigmoid(each * (high - low)) for each in u]
    slope = sum(0.5 * each * j * (1 - j) for each, j in zip(u, before, strict=True))  # dJ/d(second logit)
    gap = (high + step * slope) - (low - step * slope)
    after = [sigmoid(each * gap) for each in u]
    weights = tilted([0.5, 0.5], before, eta)
    assert one.left == pytest.approx(sum(w * j for w, j in zip(weights, after, strict=True)))
    assert one.right == pytest.approx(sum(after) / 2)
    assert one.left < one.right
    # With θ frozen, at either θ, the theorem holds for the same pair.
    for frozen in (before, after):
        moved = tilted([0.5, 0.5], frozen, eta)
        assert sum(w * j for w, j in zip(moved, frozen, strict=True)) >= sum(frozen) / 2


@pytest.mark.parametrize("step", [1.0, 1e-2, 1e-4])
def test_no_step_is_too_small_to_break_theorem_1_as_printed(step: float) -> None:
    """u in {0, 1}, J = (1/2, σ(x)), starting half a step to the left of 0: the target is 1/2 + P(1) (σ(x) - 1/2)."""
    slope = 0.5 * 0.25  # dJ/d(second logit) at x = 0, averaged over u = 0 and 1; the first logit falls as much
    x = -step * slope
    after = x + 2 * step * slope
    weight = tilted([0.5, 0.5], [0.5, sigmoid(x)], 1.0)[1]
    assert after > 0 > x
    assert weight < 0.5
    assert weight * (sigmoid(after) - 0.5) < 0.5 * (sigmoid(after) - 0.5)


def test_other_controller_needs_three_points(found: dict[str, Counterexample]) -> None:
    one = found["asp-2-dropped"]
    prior, g, f, eta = (one.example[k] for k in ("P", "L_E", "L_T", "eta"))
    assert len(prior) == 3
    center = sum(p * v for p, v in zip(prior, g, strict=True))
    after = tilted(prior, [p * (v - center) for p, v in zip(prior, g, strict=True)], eta)
    assert one.left == pytest.approx(sum(p * v for p, v in zip(after, f, strict=True)))
    assert one.right == pytest.approx(sum(p * v for p, v in zip(prior, f, strict=True)))


def test_the_shared_step_lowers_the_improvement_though_assumption_4_holds(found: dict[str, Counterexample]) -> None:
    one = found["theorem-2-shared-step"]
    rate, before, after = (one.example[k] for k in ("G J = L_E", "P(t)", "P(t+1)"))
    steeper = int(np.argmax(rate))
    assert after[steeper] > before[steeper]  # E did what Theorem 2 says
    assert one.left < one.right  # and T improved less


def test_suggested_controller_ranks_as_the_natural_step(found: dict[str, Counterexample]) -> None:
    example = found["asp-4-suggested-controller"].example
    order = {
        k: np.argsort(example[k]).tolist() for k in ("L_E / epsilon", "G J, plain gradient", "G J, natural gradient")
    }
    assert order["L_E / epsilon"] == order["G J, natural gradient"] != order["G J, plain gradient"]


def test_quantifiers(found: dict[str, Counterexample]) -> None:
    example = found["asp-4-quantifiers"].example
    low, high = example["G L_T"]
    assert high < low == 1.0
    assert example["G L_T of the same pair at eta / 100"][1] > 1.0


def test_objective_over_visits_by_hand(found: dict[str, Counterexample]) -> None:
    # Left: 2 at once. Right: 0 + 1/2·(1 + 1/2 + ...) = 1. PrintedCell: left (1-γ)·2 = 1; right 1/2·1 + 1/2·2 = 3/2.
    example = found["objective-over-visits"].example
    assert example["return of left, right"] == [2.0, 1.0]
    assert example["printed J of left, right"] == [1.0, 1.5]


def test_improvement_remark_is_off_by_the_square_of_the_discount_factor(found: dict[str, Counterexample]) -> None:
    example: dict[str, Any] = found["improvement-remark"].example
    printed = float(example["printed, E_d[V' - V]/(1-γ)"])
    mended = float(example["mended, (1-γ) E_start[V' - V]"])
    value = float(example["L_E"])
    assert mended == pytest.approx(value, rel=1e-3)
    assert printed / value == pytest.approx(1 / 0.5**2, rel=1e-3)


def test_limit_gap_does_not_shrink(found: dict[str, Counterexample]) -> None:
    gaps = list(found["theorem-r1-limit"].example["gap by number of cells"].values())
    assert gaps == sorted(gaps)
    # In the limit: E_β f = e/8/((1+e)/2)·... with weights 1 and e on the halves, against 1/e and e on the split.
    right = 1 / 8 * math.e
    exact, split = right / ((1 + math.e) / 2), right / ((math.exp(-1) + math.e) / 2)
    assert gaps[-1] == pytest.approx(split - exact, abs=1e-3)


def test_bandit_score_by_hand() -> None:
    # V = (0, 1): standardized (-1, 1). N = (0, 3): bonus sqrt(log 4 / 1), sqrt(log 4 / 4).
    score = paper_errors.bandit_score(np.array([0.0, 1.0]), np.array([0.0, 3.0]))
    np.testing.assert_allclose(score, [-1 + math.sqrt(math.log(4)), 1 + math.sqrt(math.log(4) / 4)])
    assert np.all(np.isfinite(paper_errors.bandit_score(np.zeros(3), np.zeros(3))))


class TestSearching:
    def test_simplices_are_all_of_them(self) -> None:
        assert [v.tolist() for v in simplices(1, 1)] == [[1.0]]
        assert [v.tolist() for v in simplices(2, 4)] == [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]
        assert len(list(simplices(3, 6))) == math.comb(5, 2)

    def test_a_true_claim_is_not_refuted(self) -> None:
        candidates = (Counterexample("", "", "", 1.0 + k, 1.0) for k in range(5))
        with pytest.raises(NotFoundError):
            first_failure(candidates)

    def test_the_first_failure_wins(self) -> None:
        margins = [0.0, -CLEAR_MARGIN / 2, -1.0, -5.0]
        one = first_failure(Counterexample("", "", "", m, 0.0) for m in margins)
        assert (one.left, one.searched) == (-1.0, 3)

    def test_a_mended_operator_leaves_nothing_to_find(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Negative control: the same search with E of asp:2 in place of the other controller."""
        monkeypatch.setattr(counterexamples, "simplices", lambda points, parts: iter([np.full(points, 1 / points)]))
        monkeypatch.setattr(counterexamples, "reweight_by_softmax_gradient", reweight)
        with pytest.raises(NotFoundError):
            counterexamples.other_controller(np.random.default_rng(0), 10)

    def test_two_armed(self) -> None:
        mdp, index = search.two_armed((0.0, 1.0))
        assert mdp.reward.tolist() == [[0.0, 1.0]]
        assert index.epsilon.tolist() == [1.0, 1.0]
