"""Every statement of the theory as a check on random instances, with its worst margin and verdict.

A margin is relative: it is divided by the size of the compared quantities. For an inequality it is the smallest gain,
for an identity minus the largest error. In both cases the claim holds if no margin is below ``-TOLERANCE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from gdi.theory.mdp import (
    FiniteMDP,
    action_values,
    advantages,
    performance_difference,
    random_mdp,
    random_policy,
    state_values,
)
from gdi.theory.measures import (
    TOLERANCE,
    Array,
    covariance_gain,
    mean_gain,
    scale_of,
    tilt,
)
from gdi.theory.monotonicity import improvement_rates, per_index_returns, target_gain
from gdi.theory.operators import (
    kl_gap,
    reweight,
    reweight_by_natural_gradient,
    reweight_by_projected_gradient,
)
from gdi.theory.policies import (
    Indices,
    fisher,
    natural_direction,
    policy,
    return_gradients,
    returns,
)
from gdi.theory.sampling import batches, random_comonotone, random_levels, random_mass
from gdi.theory.transport import (
    coupling,
    coupling_errors,
    coupling_on_grid,
    quantile_coupling,
    transport_disagreement,
    unit_gains,
)

SIZES = tuple(range(1, 13))


@dataclass(frozen=True)
class Verdict:
    """The result of a claim on ``instances`` random instances.

    For an inequality, ``strict`` is the share of margins above 1e-6. It shows that the claim does not hold vacuously.
    """

    instances: int
    worst: float
    strict: float | None

    @property
    def holds(self) -> bool:
        # A NaN margin compares false, and so counts as a violation.
        return self.worst >= -TOLERANCE


@dataclass(frozen=True)
class Claim:
    """One statement, and ``margins``: a stream of arrays with one relative margin per instance."""

    key: str
    label: str
    statement: str
    margins: Callable[[np.random.Generator, int], Iterator[Array]]
    identity: bool = False

    def check(self, rng: np.random.Generator, trials: int) -> Verdict:
        instances, strict, worst = 0, 0, np.inf
        for batch in self.margins(rng, trials):
            instances += batch.size
            strict += int(np.count_nonzero(batch > 1e-6))
            worst = float(np.minimum(worst, np.min(batch)))  # np.minimum keeps a NaN, which min() may lose
        return Verdict(instances, worst, None if self.identity else strict / instances)


def _rates(rng: np.random.Generator, count: int) -> Array:
    """Draw step sizes η from 1e-3 to 1e3."""
    return np.asarray(np.exp(rng.uniform(np.log(1e-3), np.log(1e3), count)))


def _error(difference: ArrayLike, size: ArrayLike) -> Array:
    """Return minus the relative error, where two zeros are equal."""
    size = np.asarray(size, float)
    return np.asarray(-np.abs(np.asarray(difference, float)) / np.where(size > 0, size, 1.0))


def kl_solution(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check that E of asp:2 maximizes E[r] - KL/η.

    The gap to any other distribution is exactly a KL divergence (>= 0).
    """
    for points, count in batches(trials, SIZES):
        prior, rate = random_mass(rng, count, points), np.exp(rng.uniform(-3, 3, count))
        value = rng.standard_normal((count, points))
        candidate = tilt(prior, rng.standard_normal((count, points)) * 3)
        gap, divergence = kl_gap(candidate, prior, value, rate)
        size = np.abs(value).max(axis=-1) + 1.0 / rate
        yield np.minimum(_error(gap - divergence, size), divergence)


def natural_gradient_solution(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check that E of asp:2 is one natural-gradient step on softmax logits.

    No probability is below 0.01, because the pseudoinverse needs that.
    """
    for points, count in batches(trials, SIZES):
        prior = rng.dirichlet(np.ones(points), count) * (1 - 0.01 * points) + 0.01
        value, rate = rng.standard_normal((count, points)), np.exp(rng.uniform(-3, 1, count))
        other = reweight_by_natural_gradient(prior, value, rate)
        yield -np.max(np.abs(other - reweight(prior, value, rate)), axis=-1)


def projected_gradient(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check Theorem 1 for E = projected gradient, which asp:2 does not cover."""
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points, largest_g=10.0)
        after = reweight_by_projected_gradient(p.mass, p.g, _rates(rng, count))
        yield mean_gain(p.mass, after, p.f) / scale_of(p.f)


def _split(rng: np.random.Generator, count: int, points: int) -> Array:
    """Draw splits 0 = x_0 < x_1 < ... < x_n < 1."""
    gaps = rng.standard_exponential((count, points)) + 1e-3
    edges = np.cumsum(gaps, axis=-1)
    return np.concatenate([np.zeros((count, 1)), edges[:, :-1]], axis=-1) / edges[:, -1:]


def increasing_inequality(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check lemma:dct_inc_R1 for β = μ exp(x)/Z on a split of [0, 1] and increasing f."""
    for points, count in batches(trials, SIZES):
        mass, x = random_mass(rng, count, points), _split(rng, count, points)
        f = random_levels(rng, count, points, 10.0)
        yield mean_gain(mass, tilt(mass, x), f) / scale_of(f)


def increasing_transport(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check that the coupling from the induction of lemma:dct_inc_R1 satisfies eq:UTTC_R1."""
    for points, count in batches(trials, SIZES):
        mass, x = random_mass(rng, count, points), _split(rng, count, points)
        yield -coupling_errors(coupling(mass, x), mass, x).worst


def comonotone_inequality(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check lemma:dct_R1 for co-monotone f and g.

    The instances include ties, zero masses, single points and |g| up to 1e4.
    """
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points)
        yield mean_gain(p.mass, tilt(p.mass, p.g), p.f) / scale_of(p.f)


def comonotone_transport(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check the coupling of lemma:dct_R1: its marginals, sign and support.

    No unit of mass loses, and the gains add up.
    """
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points)
        gamma = coupling(p.mass, p.g, ties_by=p.f)
        lost = np.max(-unit_gains(gamma, p.f), axis=(-2, -1))
        gap = np.maximum(transport_disagreement(gamma, p.mass, p.f, p.g), lost) / scale_of(p.f)
        yield -np.maximum(coupling_errors(gamma, p.mass, p.g).worst, gap)


def quantile_transport(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check the same existence in another way: the quantile coupling is also upper-triangular."""
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points)
        yield -coupling_errors(quantile_coupling(p.mass, p.g), p.mass, p.g).worst


def covariance_agrees(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check E_β[f] - E_μ[f] = Cov_μ(f, e^g) / E_μ[e^g], summed over pairs.

    It holds for co-monotone and for unrelated f and g.
    """
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points)
        unrelated = rng.permuted(p.f, axis=-1) if rng.random() < 0.5 else p.f
        gain = mean_gain(p.mass, tilt(p.mass, p.g), unrelated)
        yield _error(gain - covariance_gain(p.mass, unrelated, p.g), scale_of(unrelated))


GRIDS = ((2, 2), (3, 2), (4, 2), (2, 3), (3, 3))  # (points per axis, p)


def grid_inequality(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check the inequality of lemma:dct_Rp on grids in two and three dimensions."""
    for choice, count in batches(trials, tuple(range(len(GRIDS)))):
        side, p = GRIDS[choice]
        problem = random_comonotone(rng, count, side**p)
        yield mean_gain(problem.mass, tilt(problem.mass, problem.g), problem.f) / scale_of(problem.f)


def grid_transport(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check the coupling of lemma:dct_Rp on grids, ``gamma[i1, .., ip, j1, .., jp]``."""
    for choice, count in batches(trials, tuple(range(len(GRIDS))), largest=1000):
        side, p = GRIDS[choice]
        problem = random_comonotone(rng, count, side**p)
        shape = (count, *(side,) * p)
        gamma = coupling_on_grid(problem.mass.reshape(shape), problem.g.reshape(shape), p)
        flat = gamma.reshape(count, side**p, side**p)
        yield -coupling_errors(flat, problem.mass, problem.g).worst


def continuous(*dimensions: int) -> Callable[[np.random.Generator, int], Iterator[Array]]:
    """Check thm:cts_R1 and thm:cts_Rp on smooth random densities.

    f and g are increasing functions of one random field, and g has jumps. Integrals are Gauss-Legendre sums with 8
    nodes per axis. Their weights are positive, so each sum is itself the integral of a probability measure on [0, 1]^p.
    The inequality must therefore hold up to rounding, not only up to the quadrature's accuracy.
    """

    def margins(rng: np.random.Generator, trials: int) -> Iterator[Array]:
        node, weight = np.polynomial.legendre.leggauss(8)
        for p, count in batches(trials, dimensions, largest=250):
            x = np.stack([axis.ravel() for axis in np.meshgrid(*[(node + 1) / 2] * p)])  # [p, nodes]
            volume = np.prod(np.meshgrid(*[weight / 2] * p), axis=0).ravel()
            wave, shift = rng.normal(0, 3, (2, count, 4, p)), rng.uniform(0, 6, (2, count, 4, 1))
            density, field = np.sin(np.einsum("wbkp,pn->wbkn", wave, x) + shift).sum(axis=-2)
            mass = volume * np.exp(density)
            mass /= mass.sum(axis=-1, keepdims=True)
            f = np.arctan(field * rng.uniform(0.1, 5, (count, 1)))
            jump = rng.uniform(-2, 2, (count, 1))
            g = rng.uniform(0, 5, (count, 1)) * field + rng.uniform(0, 5, (count, 1)) * (field > jump)
            yield mean_gain(mass, tilt(mass, g), f) / scale_of(f)

    return margins


def theorem_1(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check thm:1st_gdi with frozen θ on random co-monotone L_E and L_T, for η from 1e-3 to 1e3."""
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points, largest_g=10.0)
        yield target_gain(p.mass, p.g, p.f, _rates(rng, count)) / scale_of(p.f)


def theorem_1_iterated(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check thm:1st_gdi applied eight times in a row: the smallest of the eight gains is not negative."""
    for points, count in batches(trials, SIZES):
        p = random_comonotone(rng, count, points, largest_g=10.0)
        prior, gains = p.mass, []
        for _ in range(8):
            following = reweight(prior, p.g, np.exp(rng.uniform(-3, 1, count)))
            gains.append(mean_gain(prior, following, p.f) / scale_of(p.f))
            prior = following
        yield np.min(gains, axis=0)


def random_agents(rng: np.random.Generator, trials: int) -> Iterator[tuple[FiniteMDP, Array, Indices, Array]]:
    """Draw random MDPs with four soft ε-greedy indices: (MDP, θ of every index, indices, P).

    Half are GDI-I, where all indices have one θ. Half are GDI-H, where each index has its own.
    """
    shapes = ((1, 2), (2, 2), (3, 3), (4, 3))
    for choice, count in batches(trials, tuple(range(2 * len(shapes))), largest=1000):
        states, actions = shapes[choice // 2]
        shared = choice % 2 == 0
        theta = rng.standard_normal((count, 1 if shared else 4, states, 1 if shared else 2, actions)) * 2
        thetas = np.broadcast_to(theta, (count, 4, *theta.shape[2:]))
        index = Indices(*(rng.uniform(0, top, (count, 4)) for top in (5.0, 5.0, 1.0)))
        yield random_mdp(rng, count, states, actions), thetas, index, random_mass(rng, count, 4)


def _follow(rng: np.random.Generator, f: Array) -> Array:
    """Draw a random L_E that is co-monotone with f, including ties.

    A controller that only ranks returns may see such values.
    """
    rank = np.argsort(np.argsort(f, axis=-1), axis=-1)
    return np.take_along_axis(random_levels(rng, f.shape[0], f.shape[1], 10.0), rank, axis=-1)


def theorem_1_mdp(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check thm:1st_gdi on MDPs, with exact L_T = J and L_E = J or any increasing function of it."""
    for mdp, thetas, index, prior in random_agents(rng, trials):
        value = per_index_returns(mdp, thetas, index)
        seen = value if rng.random() < 0.5 else _follow(rng, value)
        yield target_gain(prior, seen, value, _rates(rng, len(value))) / scale_of(value)


def theorem_2_mdp(natural: bool) -> Callable[[np.random.Generator, int], Iterator[Array]]:
    """Check thm:2nd_gdi on MDPs.

    f = G^η J of an exact gradient step, or natural-gradient step, per index.
    """

    def margins(rng: np.random.Generator, trials: int) -> Iterator[Array]:
        for mdp, thetas, index, prior in random_agents(rng, trials):
            rate = improvement_rates(mdp, thetas, index, float(np.exp(rng.uniform(-5, 0))), natural)
            seen = rate if rng.random() < 0.5 else _follow(rng, rate)
            yield target_gain(prior, seen, rate, _rates(rng, len(rate))) / scale_of(rate)

    return margins


def performance_difference_lemma(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check lemma:perfdiff from every start state, relative to the compared values."""
    for states, count in batches(trials, (1, 2, 3, 5)):
        mdp = random_mdp(rng, count, states, 3)
        one, two = random_policy(rng, count, states, 3), random_policy(rng, count, states, 3)
        left, right = performance_difference(mdp, one, two)
        size = np.maximum(np.abs(state_values(mdp, one)), np.abs(state_values(mdp, two))).max(axis=-1)
        yield _error(np.abs(left - right).max(axis=-1), size)


def policy_gradient_theorem(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check the gradients of this module against the complex-step derivative of J in a random direction."""
    step = 1e-30  # a complex step has no cancellation, so it may be this small
    for mdp, thetas, index, _ in random_agents(rng, trials):
        theta = thetas[:, 0]
        direction = rng.standard_normal(theta.shape)
        shifted = cast(Array, theta + 1j * step * direction)
        exact = np.imag(returns(mdp, shifted, index)) / step
        ours = np.einsum("blskc,bskc->bl", return_gradients(mdp, theta, index), direction)
        # The complex step loses the digits that a saturated softmax cancels. Rounding is therefore relative to the
        # largest slope that these values, temperatures and direction allow, not to the slope itself.
        quality = np.abs(action_values(mdp.per_index(), policy(theta, index))).max(axis=(-2, -1))
        heat = index.epsilon * index.u1 + (1.0 - index.epsilon) * index.u2
        reach = np.abs(direction).sum(axis=(-3, -2, -1)) / (1.0 - mdp.discount)
        yield np.min(_error(ours - exact, quality * heat * reach[:, None]), axis=-1)


def natural_gradient_is_advantage(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check that for softmax tables F†∇J is A/(1-γ), up to a constant per state.

    This is the step of the remark after thm:2nd_gdi.
    """
    index = Indices.temperatures(1.0)
    for states, count in batches(trials, (1, 2, 3)):
        mdp, theta = random_mdp(rng, count, states, 3), rng.standard_normal((count, states, 1, 3))
        moved = natural_direction(fisher(mdp, theta, index), return_gradients(mdp, theta, index))[:, 0, :, 0]
        lead = advantages(mdp, policy(theta, index)[:, 0]) / (1.0 - mdp.discount)[:, None, None]
        gap = (moved - moved[..., :1]) - (lead - lead[..., :1])
        # The advantage is a difference of values, so their size determines the rounding.
        values = np.abs(state_values(mdp, policy(theta, index)[:, 0])).max(axis=-1) / (1.0 - mdp.discount)
        size = np.maximum(np.abs(lead).max(axis=(-2, -1)), values)
        yield _error(np.abs(gap).max(axis=(-2, -1)), size)


def uniform_continuity(rng: np.random.Generator, trials: int) -> Iterator[Array]:
    """Check asp:1 on finite MDPs: |V1 - V2| <= max|A| max_s ||π1 - π2||_1 / (1-γ).

    It holds on every finite MDP, with this modulus.
    """
    for states, count in batches(trials, (1, 2, 3, 5)):
        mdp, one = random_mdp(rng, count, states, 3), random_policy(rng, count, states, 3)
        mix = np.exp(rng.uniform(np.log(1e-6), 0.0, (count, 1, 1)))
        two = (1 - mix) * one + mix * random_policy(rng, count, states, 3)
        gap = np.abs(state_values(mdp, one) - state_values(mdp, two)).max(axis=-1)
        distance = np.abs(one - two).sum(axis=-1).max(axis=-1)
        bound = np.abs(advantages(mdp, two)).max(axis=(-2, -1)) * distance / (1.0 - mdp.discount)
        yield (bound - gap) / (1.0 + np.abs(state_values(mdp, one)).max(axis=-1))


CLAIMS = (
    Claim("e-kl", "asp:2", "E = argmax of E[r] - KL/η", kl_solution, identity=True),
    Claim("e-natural", "asp:2", "E = softmax natural gradient", natural_gradient_solution, identity=True),
    Claim("e-projected", "(ours)", "projected-gradient E: superior target", projected_gradient),
    Claim("lemma-1", "lemma:dct_inc_R1", "increasing f: E_μ f <= E_β f", increasing_inequality),
    Claim("lemma-1-transport", "lemma:dct_inc_R1", "its coupling is a transport", increasing_transport, True),
    Claim("lemma-2", "lemma:dct_R1", "co-monotone f: E_μ f <= E_β f", comonotone_inequality),
    Claim("lemma-2-transport", "lemma:dct_R1", "its coupling, mended", comonotone_transport, True),
    Claim("lemma-2-quantile", "lemma:dct_R1", "the quantile coupling exists", quantile_transport, True),
    Claim("lemma-2-covariance", "(ours)", "gain = Cov_μ(f, e^g) / E_μ e^g", covariance_agrees, True),
    Claim("lemma-3", "lemma:dct_Rp", "the same on grids in R^2, R^3", grid_inequality),
    Claim("lemma-3-transport", "lemma:dct_Rp", "its coupling, mended", grid_transport, True),
    Claim("theorem-r1", "thm:cts_R1", "continuous μ on [0, 1]", continuous(1)),
    Claim("theorem-rp", "thm:cts_Rp", "continuous μ on [0, 1]^2, [0, 1]^3", continuous(2, 3)),
    Claim("theorem-1", "thm:1st_gdi", "superior target, θ frozen", theorem_1),
    Claim("theorem-1-iterated", "thm:1st_gdi", "eight steps of E, none lowers it", theorem_1_iterated),
    Claim("theorem-1-mdp", "thm:1st_gdi", "on MDPs, L_T = J", theorem_1_mdp),
    Claim("theorem-2-mdp", "thm:2nd_gdi", "on MDPs, G J of a gradient step", theorem_2_mdp(False)),
    Claim("theorem-2-natural", "thm:2nd_gdi", "on MDPs, G J of a natural step", theorem_2_mdp(True)),
    Claim("performance-difference", "lemma:perfdiff", "V - V' = E_d A' / (1-γ)", performance_difference_lemma, True),
    Claim("policy-gradient", "(ours)", "exact gradient = complex step", policy_gradient_theorem, True),
    Claim("natural-gradient", "(ours)", "F†∇J = A / (1-γ)", natural_gradient_is_advantage, True),
    Claim("assumption-1", "asp:1", "V is Lipschitz in π", uniform_continuity),
)
