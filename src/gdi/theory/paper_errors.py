"""Statements of the paper that are wrong as printed, each with the smallest example.

The theorems survive all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

from gdi.theory.as_printed import coupling_as_printed, obstruction
from gdi.theory.mdp import FiniteMDP, advantages, expected_return, random_mdp, state_values, visitation
from gdi.theory.measures import Array, co_monotone, mean, mean_gain, tilt
from gdi.theory.monotonicity import suggested_value
from gdi.theory.operators import kl_objective, reweight
from gdi.theory.policies import Indices, policy
from gdi.theory.sampling import random_comonotone, random_unrelated
from gdi.theory.search import CLEAR_MARGIN, Counterexample, Search, first_failure, simplices, to_plain, with_rate
from gdi.theory.transport import coupling, coupling_errors, unit_gains


def printed_induction(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the proof of lemma:dct_R1 as printed: its coupling is invalid from three points on.

    The lemma itself is true. The example also shows that no "proper measure" can be filled in, because one row is
    forced to hold more than its mass.
    """

    def candidates() -> Iterator[Counterexample]:
        for points in (1, 2, 3):
            for parts in range(points, 12):
                for mass, g in product(simplices(points, parts), permutations(range(points))):
                    levels = np.array(g, float)
                    gamma = coupling_as_printed(mass, levels)
                    row = obstruction(mass, levels) if points == 3 else None
                    if row is not None and row[0] <= row[1]:
                        # This one is broken as well, but another filling might work. Search for one that no filling can
                        # fix.
                        continue
                    yield Counterexample(
                        "lemma:dct_R1 (proof)",
                        "lumping in the order of g (printed: at neighbors in space)",
                        "-(worst error of the coupling) >= 0",
                        -float(coupling_errors(gamma, mass, levels).worst),
                        0.0,
                        {
                            "mu": to_plain(mass),
                            "g": list(g),
                            "gamma as printed": to_plain(gamma),
                            "row sums": to_plain(gamma.sum(axis=1)),
                            "entry forced on the lowest row, and its whole mass": to_plain(row) if row else None,
                        },
                    )

    mass = rng.dirichlet(np.ones(4), min(trials, 500))
    levels = rng.standard_normal(mass.shape)
    broken = [
        float(coupling_errors(coupling_as_printed(m, g), m, g).worst) > 1e-9 for m, g in zip(mass, levels, strict=True)
    ]
    return with_rate(first_failure(candidates()), np.array(broken))


def printed_ties(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the printed coupling for ties in g (proof of lemma:dct_R1): it loses mass from two points on."""

    def candidates() -> Iterator[Counterexample]:
        for points in (1, 2):
            for mass in simplices(points, points):
                levels = np.zeros(points)
                gamma = coupling_as_printed(mass, levels)
                yield Counterexample(
                    "lemma:dct_R1 (proof)",
                    "splitting row and column k* at a tie (printed: multiples of a zero row)",
                    "the coupling has total mass 1: -|1 - total| >= 0",
                    -abs(1.0 - float(gamma.sum())),
                    0.0,
                    {"mu": to_plain(mass), "g": to_plain(levels), "gamma as printed": to_plain(gamma)},
                )

    mass = rng.dirichlet(np.ones(3), min(trials, 500))
    broken = [abs(1.0 - float(coupling_as_printed(m, np.zeros(3)).sum())) > 1e-9 for m in mass]
    return with_rate(first_failure(candidates()), np.array(broken))


def tied_support(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the last step of the proof of lemma:dct_R1.

    It concludes from "no mass where g(x) > g(y)" that "no unit of mass loses". That fails at ties of g, where a
    co-monotone f may fall and the transport may move mass. The sum is still correct, and ordering ties by f fixes the
    step.
    """

    def candidates() -> Iterator[Counterexample]:
        for points in (1, 2):
            mass, g = np.full(points, 1.0 / points), np.zeros(points)
            for f in product((0.0, 1.0), repeat=points):
                gamma = np.outer(mass, tilt(mass, g))
                yield Counterexample(
                    "lemma:dct_R1 (proof)",
                    "ties of g ordered by f (printed: support where g(x) <= g(y))",
                    "the least gain of a unit of mass >= 0",
                    float(unit_gains(gamma, np.array(f)).min()),
                    0.0,
                    {
                        "mu": to_plain(mass),
                        "g": to_plain(g),
                        "f": list(f),
                        "a coupling as the proof asks for": to_plain(gamma),
                        "its worst error": float(coupling_errors(gamma, mass, g).worst),
                    },
                )

    problem = random_comonotone(rng, trials, 4)
    losing = unit_gains(coupling(problem.mass, problem.g), problem.f).min(axis=(-2, -1))
    return with_rate(first_failure(candidates()), losing < -1e-9)


def limit_step(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the step from lemma:dct_R1 to thm:cts_R1: |E_β[f] - E_β̃[f]| < ε for a fine split.

    Only f is assumed continuous, and β̃ uses g at the split points alone. If g misbehaves there, no split is fine
    enough. The theorem is true, because it is a covariance.

    The example has μ uniform, f = max(0, x - 1/2), and g = 1 on the right half. On the left half g = 0, but -depth at
    rational points. f and g are co-monotone. E_β sees the 0, because rationals have no mass, but β̃ on a rational split
    sees -depth.
    """

    def gap(cells: int, depth: float) -> float:
        x = np.arange(cells) / cells
        middle = x + 0.5 / cells  # f is affine on each cell, so its midpoint value is its exact mean there
        flat = np.full(cells, 1.0 / cells)
        exact = mean(tilt(flat, np.where(x < 0.5, 0.0, 1.0)), np.maximum(0.0, middle - 0.5))
        split = mean(tilt(flat, np.where(x < 0.5, -depth, 1.0)), np.maximum(0.0, x - 0.5))
        return float(abs(exact - split))

    def candidates() -> Iterator[Counterexample]:
        for depth in (0.0, 1.0):
            gaps = {cells: gap(cells, depth) for cells in (10, 100, 1000, 10_000)}
            yield Counterexample(
                "thm:cts_R1 (proof)",
                "continuity of g (printed: of f alone)",
                "the gap of the finest split is below 1e-3: 1e-3 - gap >= 0",
                1e-3 - gaps[10_000],
                0.0,
                {
                    "mu, f": "uniform on [0, 1], max(0, x - 1/2)",
                    "g": f"1 right of 1/2; left of it 0, at rationals {-depth}",
                    "gap by number of cells": {str(k): round(v, 6) for k, v in gaps.items()},
                },
            )

    depths = rng.uniform(0.5, 5.0, min(trials, 500))
    return with_rate(first_failure(candidates()), np.array([gap(1000, depth) > 1e-2 for depth in depths]))


def kl_remark(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the remark after asp:2 that P exp(ηr)/Z maximizes E[r] - η KL.

    The maximizer is P exp(r/η)/Z. The two agree only at η = 1.
    """

    def sides(prior: Array, value: Array, eta: float | Array) -> tuple[Array, Array]:
        inverse = 1.0 / np.asarray(eta, float)
        printed, true = reweight(prior, value, eta), reweight(prior, value, inverse)
        return kl_objective(printed, prior, value, inverse), kl_objective(true, prior, value, inverse)

    def candidates() -> Iterator[Counterexample]:
        for points, eta in product((1, 2), (1.0, 2.0)):
            prior, value = np.full(points, 1.0 / points), np.arange(points, dtype=float)
            left, right = sides(prior, value, eta)
            yield Counterexample(
                "asp:2 (remark)",
                "1/eta (printed: eta) before the KL divergence",
                "E[r] - eta KL at P exp(eta r)/Z >= the same at P exp(r/eta)/Z",
                float(left),
                float(right),
                {
                    "P": to_plain(prior),
                    "r": to_plain(value),
                    "eta": eta,
                    "P exp(eta r)/Z": to_plain(reweight(prior, value, eta)),
                    "P exp(r/eta)/Z": to_plain(reweight(prior, value, 1.0 / eta)),
                },
            )

    problem = random_unrelated(rng, trials, 4)
    left, right = sides(problem.mass, problem.g, np.exp(rng.uniform(-2, 2, trials)))
    return with_rate(first_failure(candidates()), left - right < -1e-9)


def bandit_score(value: Array, count: Array, c: float = 1.0) -> Array:
    r"""Return eq:bandit_score.

    It is :math:`(V_i - \mu(V)) / \sigma(V) + c \sqrt{\log(1 + \sum_j N_j) / (1 + N_i)}`.
    """
    spread = np.std(value, axis=-1, keepdims=True)
    standard = (value - np.mean(value, axis=-1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(standard + c * np.sqrt(np.log1p(np.sum(count, axis=-1, keepdims=True)) / (1.0 + count)))


def bandit_as_e(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test "E is achieved by a variant of MAB, where Assumption 2 holds naturally".

    The paper's own bandit is not of the form P exp(ηL_E)/Z. Its bonus ranks a rarely tried index first, however low its
    return, and then the target falls. That is intended exploration, but Theorem 1 does not cover it.
    """

    def pick(value: Array, count: Array) -> Array:
        score = bandit_score(value, count)
        best = score == score.max(axis=-1, keepdims=True)
        return np.asarray(best / best.sum(axis=-1, keepdims=True))

    def candidates() -> Iterator[Counterexample]:
        value, prior = np.array([0.0, 1.0]), np.full(2, 0.5)
        for tried in (2.0**k for k in range(12)):
            count = np.array([0.0, tried])
            after = pick(value, count)
            yield Counterexample(
                "asp:2 (holds naturally)",
                "E = P exp(eta L_E)/Z (the paper's bandit is not of this form)",
                "E_after[L_T] >= E_before[L_T]",
                float(mean(after, value)),
                float(mean(prior, value)),
                {
                    "L_E = L_T = V": to_plain(value),
                    "N, visits": to_plain(count),
                    "score": to_plain(bandit_score(value, count)),
                    "P": to_plain(prior),
                    "P after, mode argmax": to_plain(after),
                },
            )

    # These visits are like those of a running bandit: a few blocks are tried often, others rarely.
    value, count = rng.standard_normal((trials, 10)), np.floor(np.exp(rng.uniform(0, np.log(1000), (trials, 10))))
    gain = mean_gain(np.full((trials, 10), 0.1), pick(value, count), value)
    return with_rate(first_failure(candidates()), gain < -CLEAR_MARGIN)


def improvement_remark(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the last remark of the theory: L_E is about E_{s~d}[V' - V] / (1-γ).

    The correct value is (1-γ) E_{s0~ρ0}[V' - V]. The printed factor is inverted, and the states should be those of the
    start. Errors are relative, at a small ε where "about" is sharp.
    """
    epsilon = 1e-3

    def errors(mdp: FiniteMDP, theta: Array) -> tuple[Array, Array, Array, Array, Array]:
        index = Indices(*(np.full((*theta.shape[:-3], 1), v) for v in (1.0, 0.0, 1.0)))
        value = suggested_value(mdp, np.expand_dims(theta, -4), index, epsilon)[..., 0]
        acting = np.asarray(policy(theta, index))[..., 0, :, :]
        lead = advantages(mdp, acting)
        following = reweight(acting, lead, np.full(acting.shape[:-1], epsilon))
        rise = np.asarray(state_values(mdp, following) - state_values(mdp, acting))
        printed = np.sum(visitation(mdp, acting) * rise, axis=-1) / (1.0 - mdp.discount)
        mended = np.sum(mdp.start * rise, axis=-1) * (1.0 - mdp.discount)
        size = np.abs(value) + 1e-300
        return value, printed, mended, np.abs(printed - value) / size, np.abs(mended - value) / size

    def candidates() -> Iterator[Counterexample]:
        for discount in (0.0, 0.5):
            mdp = FiniteMDP(np.ones((1, 2, 1)), np.array([[0.0, 1.0]]), np.asarray(discount), np.ones(1))
            value, printed, mended, wrong, right = errors(mdp, np.zeros((1, 1, 2)))
            yield Counterexample(
                "thm:2nd_gdi (remark)",
                "(1-γ) E_{s0~ρ0} (printed: 1/(1-γ) E_{s~d})",
                "the printed approximation is as good as the corrected one: -error >= -error",
                -float(wrong),
                -float(right),
                {
                    "MDP": f"one state, two actions paying 0 and 1, γ = {discount}",
                    "epsilon": epsilon,
                    "L_E": f"{float(value):.4g}",
                    "printed, E_d[V' - V]/(1-γ)": f"{float(printed):.4g}",
                    "mended, (1-γ) E_start[V' - V]": f"{float(mended):.4g}",
                },
            )

    mdp = random_mdp(rng, trials, 3, 2)
    _, _, _, wrong, right = errors(mdp, rng.standard_normal((trials, 3, 1, 2)))
    return with_rate(first_failure(candidates()), wrong > right + CLEAR_MARGIN)


def objective_over_visits(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test eq_accmulate_reward, which averages V over the visited states d^π instead of the start.

    It can rank a worse policy first.
    """

    def sides(mdp: FiniteMDP, policies: Array) -> tuple[Array, Array]:
        many = mdp.per_index()
        printed = np.sum(visitation(many, policies) * state_values(many, policies), axis=-1)
        return np.asarray(printed), np.asarray(expected_return(many, policies))

    def candidates() -> Iterator[Counterexample]:
        for now, later in product((1.0, 2.0, 3.0), (1.0, 2.0)):
            # From the start, left pays `now` and ends. Right pays 0 and enters a room that pays `later` forever.
            transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
            transition[0, 0, 2] = transition[0, 1, 1] = 1.0
            transition[1, :, 1] = transition[2, :, 2] = 1.0
            reward[0, 0], reward[1, :] = now, later
            mdp = FiniteMDP(transition, reward, np.asarray(0.5), np.array([1.0, 0.0, 0.0]))
            policies = np.zeros((2, 3, 2))
            policies[0, :, 0] = policies[1, :, 1] = 1.0
            printed, real = sides(mdp, policies)
            chosen = int(np.argmax(printed))
            yield Counterexample(
                "eq_accmulate_reward",
                "J over the start distribution (printed: over d^π)",
                "the policy that maximizes the printed J has the largest return",
                float(real[chosen]),
                float(np.max(real)),
                {
                    "MDP": f"left pays {now} and ends; right pays 0, then {later} forever; γ = 0.5",
                    "printed J of left, right": to_plain(printed),
                    "return of left, right": to_plain(real),
                },
            )

    mdp = random_mdp(rng, trials, 3, 2)
    printed, real = sides(mdp, rng.dirichlet(np.ones(2), (trials, 2, 3)))
    return with_rate(first_failure(candidates()), ~co_monotone(printed, real))


def first_order_step_as_printed(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test the printed first-order E, P + η ∇_P E_P[r] = P + η r: it leaves the simplex on one point."""

    def candidates() -> Iterator[Counterexample]:
        for points in (1, 2):
            prior, value = np.full(points, 1.0 / points), np.ones(points)
            total = float(np.sum(prior + 1.0 * value))
            yield Counterexample(
                "first-order E",
                "a projection back to the simplex",
                "the step has total mass 1: -|1 - total| >= 0",
                -abs(1.0 - total),
                0.0,
                {"P": to_plain(prior), "r": to_plain(value), "eta": 1.0, "P + eta r": to_plain(prior + value)},
            )

    problem = random_unrelated(rng, trials, 4)
    off = np.abs(np.sum(problem.mass + problem.g, axis=-1) - 1.0)
    return with_rate(first_failure(candidates()), off > CLEAR_MARGIN)


SEARCHES: dict[str, Search] = {
    "lemma-2-induction": printed_induction,
    "lemma-2-ties": printed_ties,
    "lemma-2-tied-support": tied_support,
    "theorem-r1-limit": limit_step,
    "kl-remark": kl_remark,
    "bandit-as-e": bandit_as_e,
    "improvement-remark": improvement_remark,
    "objective-over-visits": objective_over_visits,
    "first-order-step": first_order_step_as_printed,
}
