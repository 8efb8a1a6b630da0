"""Searches that drop one assumption and find the smallest example where the conclusion fails."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from gdi.theory.mdp import FiniteMDP
from gdi.theory.measures import Array, co_monotone, covariance_gain, mean, mean_gain, scale_of, tilt
from gdi.theory.monotonicity import improvement_rates, per_index_returns, per_index_step, suggested_value
from gdi.theory.operators import improve, reweight, reweight_by_softmax_gradient
from gdi.theory.policies import Indices, return_gradients, returns
from gdi.theory.sampling import random_comonotone, random_unrelated
from gdi.theory.search import (
    CLEAR_MARGIN,
    Counterexample,
    Search,
    first_failure,
    shared_agents,
    simplices,
    to_plain,
    two_armed,
    with_rate,
)


def without_comonotonicity(rng: np.random.Generator, trials: int) -> Counterexample:
    """Drop asp:3 from lemma:dct_R1 and thm:1st_gdi: E may lower the target."""

    def candidates() -> Iterator[Counterexample]:
        for points in (1, 2, 3):
            for parts in range(points, points + 4):
                for mass in simplices(points, parts):
                    for levels in product(range(points), repeat=2 * points):
                        g, f = np.array(levels[:points], float), np.array(levels[points:], float)
                        after = tilt(mass, g)
                        yield Counterexample(
                            "asp:3",
                            "co-monotonicity of L_E and L_T",
                            "E_after[L_T] >= E_before[L_T]",
                            float(mean(after, f)),
                            float(mean(mass, f)),
                            {"P": to_plain(mass), "L_E": to_plain(g), "L_T": to_plain(f), "eta": 1.0},
                        )

    problem = random_unrelated(rng, trials, 4)
    gain = covariance_gain(problem.mass, problem.f, problem.g) / scale_of(problem.f)
    return with_rate(first_failure(candidates()), gain < -CLEAR_MARGIN)


def without_second_order_comonotonicity(rng: np.random.Generator, trials: int) -> Counterexample:
    """Drop asp:4 from thm:2nd_gdi in the most natural way: L_E = J, the return itself.

    A good policy has little left to gain.
    """

    def candidates() -> Iterator[Counterexample]:
        for u in ((0.0, 1.0), (1.0, 2.0), (1.0, 3.0)):
            mdp, index = two_armed(u)
            for x, eta in product((0.0, 1.0, 2.0, 3.0), (1.0, 4.0, 16.0)):
                theta, prior = np.full((2, 1, 1, 2), [0.0, x]), np.full(2, 0.5)
                value, rate = per_index_returns(mdp, theta, index), improvement_rates(mdp, theta, index, 0.1)
                yield Counterexample(
                    "asp:4",
                    "co-monotonicity of L_E and G L_T (here L_E = J)",
                    "E_after[G L_T] >= E_before[G L_T]",
                    float(mean(reweight(prior, value, eta), rate)),
                    float(mean(prior, rate)),
                    {
                        "MDP": "one state, two actions paying 0 and 1",
                        "u = 1/tau of the indices": list(u),
                        "logits": [0.0, x],
                        "eta": eta,
                        "J = L_E": to_plain(value),
                        "G J": to_plain(rate),
                    },
                )

    mdp, theta, index, prior = shared_agents(rng, trials)
    spread = np.repeat(theta[:, None], index.u1.shape[-1], axis=1)
    value, rate = per_index_returns(mdp, spread, index), improvement_rates(mdp, spread, index, 0.01)
    gain = mean_gain(prior, reweight(prior, value, np.ones(trials)), rate) / scale_of(rate)
    return with_rate(first_failure(candidates()), gain < -1e-9)


def other_controller(rng: np.random.Generator, trials: int) -> Counterexample:
    """Drop asp:2: E is the plain gradient in softmax logits.

    It moves an index in proportion to its own probability, so a rare good index loses to a common fair one. The example
    needs three points. On two points f is an increasing affine function of L_E, which E does raise.
    """

    def candidates() -> Iterator[Counterexample]:
        for points in (1, 2, 3):
            for parts in (4, 8, 16):
                for mass in simplices(points, parts):
                    for levels in product(range(points), repeat=2 * points):
                        g, f = np.array(levels[:points], float), np.array(levels[points:], float)
                        if not co_monotone(f, g):
                            continue
                        after = reweight_by_softmax_gradient(mass, g, 4.0)
                        yield Counterexample(
                            "asp:2",
                            "E = P exp(eta L_E)/Z (here: a plain gradient step on softmax logits)",
                            "E_after[L_T] >= E_before[L_T]",
                            float(mean(after, f)),
                            float(mean(mass, f)),
                            {
                                "P": to_plain(mass),
                                "L_E": to_plain(g),
                                "L_T": to_plain(f),
                                "eta": 4.0,
                                "P after": to_plain(after),
                            },
                        )

    problem = random_comonotone(rng, trials, 4, largest_g=10.0)
    after = reweight_by_softmax_gradient(problem.mass, problem.g, np.ones(trials))
    gain = mean_gain(problem.mass, after, problem.f) / scale_of(problem.f)
    return with_rate(first_failure(candidates()), gain < -1e-9)


def moving_theta(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test thm:1st_gdi as printed: P moves by L_E at θ(t), but the target is taken at θ(t+1) = T(θ(t)).

    Here L_E = L_T = J, so asp:3 holds at *every* θ, and T is an exact gradient step. To the left of x = 0 a cold policy
    is worse than a uniform one, and to the right it is better. E decides before the step, but the theorem evaluates
    after it.
    """

    def candidates() -> Iterator[Counterexample]:
        for u in ((0.0, 1.0), (0.0, 2.0), (1.0, 2.0)):
            mdp, index = two_armed(u)
            for step, x, eta in product((1.0, 2.0, 4.0), (0.0, -0.125, -0.25, -0.5), (1.0, 2.0, 4.0)):
                theta, prior = np.array([[[0.0, x]]]), np.full(2, 0.5)
                before = returns(mdp, theta, index)
                moved = improve(mdp, theta, index, prior, step)
                values = returns(mdp, moved, index)
                after = reweight(prior, before, eta)
                yield Counterexample(
                    "thm:1st_gdi",
                    "one θ on both sides (printed: P from θ(t), L_T at θ(t+1))",
                    "E_after[L_T(θ(t+1))] >= E_before[L_T(θ(t+1))]",
                    float(mean(after, values)),
                    float(mean(prior, values)),
                    {
                        "MDP": "one state, two actions paying 0 and 1",
                        "u = 1/tau of the indices": list(u),
                        "logits(t)": [0.0, x],
                        "logits(t+1)": to_plain(moved[0, 0]),
                        "step of T": step,
                        "eta": eta,
                        "J(t) = L_E = L_T": to_plain(before),
                        "J(t+1) = L_T": to_plain(values),
                        "P(t+1)": to_plain(after),
                    },
                )

    mdp, theta, index, prior = shared_agents(rng, trials)
    before = returns(mdp, theta, index)
    values = np.asarray(returns(mdp, improve(mdp, theta, index, prior, 0.5), index))
    gain = mean_gain(prior, reweight(prior, before, np.ones(trials)), values) / scale_of(values)
    return with_rate(first_failure(candidates()), gain < -1e-9)


def moving_theta_second_order(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test thm:2nd_gdi as printed, which has the same error.

    L_E and f are the improvement rate G^η J, and asp:4 holds at every θ.
    """

    def candidates() -> Iterator[Counterexample]:
        for u in ((0.0, 1.0), (1.0, 2.0), (1.0, 3.0)):
            mdp, index = two_armed(u)
            for step, x, eta in product((1.0, 2.0, 4.0), (0.0, 0.5, 1.0), (1.0, 4.0, 16.0)):
                theta, prior = np.array([[[0.0, x]]]), np.full(2, 0.5)
                moved = improve(mdp, theta, index, prior, step)
                before = improvement_rates(mdp, np.stack([theta] * 2), index, 0.1)
                values = improvement_rates(mdp, np.stack([moved] * 2), index, 0.1)
                after = reweight(prior, before, eta)
                yield Counterexample(
                    "thm:2nd_gdi",
                    "one θ on both sides (printed: P from θ(t), G L_T at θ(t+1))",
                    "E_after[G L_T(θ(t+1))] >= E_before[G L_T(θ(t+1))]",
                    float(mean(after, values)),
                    float(mean(prior, values)),
                    {
                        "MDP": "one state, two actions paying 0 and 1",
                        "u = 1/tau of the indices": list(u),
                        "logits(t)": [0.0, x],
                        "logits(t+1)": to_plain(moved[0, 0]),
                        "step of T": step,
                        "eta": eta,
                        "G J(t) = L_E": to_plain(before),
                        "G J(t+1)": to_plain(values),
                    },
                )

    mdp, theta, index, prior = shared_agents(rng, trials)
    spread = np.repeat(theta[:, None], index.u1.shape[-1], axis=1)
    moved = np.repeat(improve(mdp, theta, index, prior, 0.5)[:, None], index.u1.shape[-1], axis=1)
    before, values = (improvement_rates(mdp, each, index, 0.01) for each in (spread, moved))
    gain = mean_gain(prior, reweight(prior, before, np.ones(trials)), values) / scale_of(values)
    return with_rate(first_failure(candidates()), gain < -1e-9)


def two_rooms(pay: float, prize: float) -> FiniteMDP:
    """Return an MDP with two rooms; state 2 is the end.

    In room 0, left pays ``pay`` and ends, and right leads to room 1. In room 1, left pays 0 and right pays ``prize``.
    """
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[0, 0, 2] = transition[0, 1, 1] = 1.0
    transition[1, :, 2] = transition[2, :, 2] = 1.0
    reward[0, 0], reward[1, 1] = pay, prize
    return FiniteMDP(transition, reward, np.asarray(0.9), np.array([1.0, 0.0, 0.0]))


def shared_step(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test "the expected improvement of T is higher" for the T that GDI-I really takes.

    This is the remark after thm:2nd_gdi. GDI-I takes one step for all indices, along the mean gradient. asp:4 holds
    (L_E = G L_T), yet E can lower the improvement. The gradients of two indices may oppose each other, and moving P
    toward the steeper one first cancels them.

    The policy is wrong in the second room. A cold index should therefore go left in the first room, and a warm one
    right.
    """
    eta_t = 0.01

    def improvement(weights: Array, mdp: FiniteMDP, theta: Array, index: Indices) -> float:
        moved = improve(mdp, theta, index, weights, eta_t)
        gain = np.asarray(returns(mdp, moved, index) - returns(mdp, theta, index))
        return float(mean(weights, gain)) / eta_t

    def candidates() -> Iterator[Counterexample]:
        for prize, lean, u, parts in product((1.0, 2.0, 4.0, 8.0), (1.0, 2.0), ((1.0, 2.0), (1.0, 4.0)), (2, 4, 8)):
            mdp, index, theta = two_rooms(1.0, prize), Indices.temperatures(*u), np.zeros((3, 1, 2))
            theta[1, 0, 0] = lean
            rate = improvement_rates(mdp, np.stack([theta] * 2), index, eta_t)
            for prior, eta in product(simplices(2, parts), (0.25, 0.5, 1.0)):
                after = reweight(prior, rate, eta)
                yield Counterexample(
                    "thm:2nd_gdi (remark)",
                    "parameters of their own per index (here GDI-I: one θ, one step)",
                    "improvement of T after E >= improvement of T before",
                    improvement(after, mdp, theta, index),
                    improvement(prior, mdp, theta, index),
                    {
                        "MDP": f"left pays 1 and ends, right enters a room that pays 0 or {prize}; γ = 0.9",
                        "u = 1/tau of the indices": list(u),
                        "logits": {"room 1": [0.0, 0.0], "room 2": [lean, 0.0]},
                        "G J = L_E": to_plain(rate),
                        "P(t)": to_plain(prior),
                        "P(t+1)": to_plain(after),
                        "eta": eta,
                    },
                )

    # On random instances the step is infinitesimal. G L_T is then the squared gradient, and T improves by the squared
    # mean gradient.
    mdp, theta, index, prior = shared_agents(rng, trials)
    gradient = return_gradients(mdp, theta, index).reshape(*prior.shape, -1)
    steepness = np.sum(gradient**2, axis=-1)
    after = reweight(prior, steepness / scale_of(steepness)[:, None], np.ones(trials))
    gains = [np.sum(np.einsum("bl,blp->bp", weights, gradient) ** 2, axis=-1) for weights in (after, prior)]
    return with_rate(first_failure(candidates()), gains[0] < gains[1] * (1.0 - 1e-9))


def suggested_controller_with_plain_gradient(rng: np.random.Generator, trials: int) -> Counterexample:
    """Test asp:4 for the L_E that the paper suggests, the expected advantage after π exp(εA).

    That L_E follows the improvement of a *natural* gradient step, but asp:4 prints a plain one. The two need not be
    co-monotone, and then Theorem 2 does not apply.
    """

    def candidates() -> Iterator[Counterexample]:
        for rewards, logits, u in product(
            product((0.0, 1.0, 2.0), repeat=3), product((0.0, 1.0, 2.0), repeat=3), ((1.0, 2.0), (1.0, 4.0))
        ):
            mdp = FiniteMDP(np.ones((1, 3, 1)), np.array([rewards]), np.asarray(0.0), np.ones(1))
            index, thetas = Indices.temperatures(*u), np.full((2, 1, 1, 3), logits)
            value = suggested_value(mdp, thetas, index, 0.01) / 0.01
            plain = improvement_rates(mdp, thetas, index, 0.01)
            prior = np.full(2, 0.5)
            yield Counterexample(
                "asp:4 (remark)",
                "a natural gradient in G L_T, for the suggested L_E",
                "E_after[G L_T] >= E_before[G L_T]",
                float(mean(reweight(prior, value, 16.0), plain)),
                float(mean(prior, plain)),
                {
                    "MDP": f"one state, three actions paying {list(rewards)}",
                    "u = 1/tau of the indices": list(u),
                    "logits": list(logits),
                    "L_E / epsilon": to_plain(value),
                    "G J, plain gradient": to_plain(plain),
                    "G J, natural gradient": to_plain(improvement_rates(mdp, thetas, index, 0.01, natural=True)),
                },
            )

    mdp, theta, index, _ = shared_agents(rng, trials, states=1, actions=3, indices=2)
    spread = np.repeat(theta[:, None], 2, axis=1)
    value = suggested_value(mdp, spread, index, 1e-3)
    plain = np.sum(per_index_step(mdp, spread, index, natural=False) ** 2, axis=(-3, -2, -1))
    return with_rate(first_failure(candidates()), ~co_monotone(value, plain))


def pairwise_threshold(rng: np.random.Generator, trials: int) -> Counterexample:
    r"""Test asp:4 as printed, which chooses η₀ *after* the pair λ₁, λ₂.

    On an infinite Λ possibly no η serves all pairs. Theorem 2 needs one η for all, so it then fails for every η.

    :math:`\mathcal{L}_\mathcal{T}(0, \theta) = \theta` and :math:`\mathcal{L}_\mathcal{T}(n, \theta) =
    \tanh(2n\theta)/n` have the gradients 1 and 2 at θ = 0. :math:`\mathcal{L}_\mathcal{E} = 0` and 1 agrees with
    :math:`G^\eta` for every η below some :math:`\eta_n` of order 1/n.
    """

    def rate(n: int, eta: float) -> float:
        return 1.0 if n == 0 else float(np.tanh(2 * n * 2 * eta) / (n * eta))

    def example(eta: float, n: int) -> Counterexample:
        prior = np.full(2, 0.5)
        values = np.array([rate(0, eta), rate(n, eta)])
        after = reweight(prior, np.array([0.0, 1.0]), 1.0)
        return Counterexample(
            "asp:4 (quantifiers)",
            "one η0 for all pairs (printed: η0 may depend on the pair)",
            "E_after[G L_T] >= E_before[G L_T]",
            float(mean(after, values)),
            float(mean(prior, values)),
            {
                "Lambda": "0, 1, 2, ...; L_E(0) = 0, L_E(n) = 1",
                "L_T(0, θ), L_T(n, θ) at θ = 0": "θ, tanh(2nθ)/n",
                "eta": eta,
                "indices 0 and n, n": n,
                "G L_T": to_plain(values),
                "G L_T of the same pair at eta / 100": to_plain([rate(0, eta / 100), rate(n, eta / 100)]),
            },
        )

    found = first_failure(example(0.1, n) for n in range(1, 10_000))
    # For any η, however small, some n fails. This is measured over random η.
    etas = np.exp(rng.uniform(np.log(1e-6), 0.0, trials))
    return with_rate(found, np.array([example(eta, int(4 / eta)).margin < -CLEAR_MARGIN for eta in etas]))


SEARCHES: dict[str, Search] = {
    "asp-3-dropped": without_comonotonicity,
    "asp-4-dropped": without_second_order_comonotonicity,
    "asp-2-dropped": other_controller,
    "theorem-1-moving-theta": moving_theta,
    "theorem-2-moving-theta": moving_theta_second_order,
    "theorem-2-shared-step": shared_step,
    "asp-4-suggested-controller": suggested_controller_with_plain_gradient,
    "asp-4-quantifiers": pairwise_threshold,
}
