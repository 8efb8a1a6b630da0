r"""Finite MDPs solved exactly: values, visitation distributions, advantages, performance difference.

Everything is a linear solve, without sampling or iteration. Leading axes are instances (or indices λ) and broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdi.theory.measures import Array


@dataclass(frozen=True)
class FiniteMDP:
    r"""A finite MDP :math:`(\mathcal{S}, \mathcal{A}, p, r, \gamma, \rho_0)`, or a batch of them.

    ``transition[..., s, a, s']``, ``reward[..., s, a]``, ``discount[...]`` in [0, 1), ``start[..., s]``.
    """

    transition: Array
    reward: Array
    discount: Array
    start: Array

    def __post_init__(self) -> None:
        if np.any(self.discount < 0) or np.any(self.discount >= 1):
            raise ValueError("discount must lie in [0, 1)")
        for name, rows in (("transition", self.transition), ("start", self.start)):
            if np.any(rows < 0) or not np.allclose(rows.sum(axis=-1), 1.0, rtol=0, atol=1e-9):
                raise ValueError(f"{name} must be probabilities that sum to one")

    def per_index(self) -> FiniteMDP:
        """Return the same MDPs with one more instance axis, over which indices λ broadcast."""
        return FiniteMDP(
            np.expand_dims(self.transition, -4),
            np.expand_dims(self.reward, -3),
            np.expand_dims(self.discount, -1),
            np.expand_dims(self.start, -2),
        )

    def with_reward(self, reward: Array) -> FiniteMDP:
        return FiniteMDP(self.transition, reward, self.discount, self.start)


def _resolvent(mdp: FiniteMDP, policy: Array) -> Array:
    r"""Return :math:`I - \gamma P_\pi`; it also accepts a policy with a complex step."""
    chain = np.einsum("...sa,...sat->...st", policy, mdp.transition)
    return np.asarray(np.eye(chain.shape[-1]) - mdp.discount[..., None, None] * chain)


def state_values(mdp: FiniteMDP, policy: Array) -> Array:
    r"""Return the state values :math:`V^\pi = (I - \gamma P_\pi)^{-1} r_\pi`."""
    reward = np.einsum("...sa,...sa->...s", policy, mdp.reward)
    return np.asarray(np.linalg.solve(_resolvent(mdp, policy), reward[..., None])[..., 0])


def action_values(mdp: FiniteMDP, policy: Array) -> Array:
    r"""Return the action values :math:`Q^\pi(s,a) = r(s,a) + \gamma \sum_{s'} p(s'|s,a) V^\pi(s')`."""
    values = state_values(mdp, policy)
    following = np.einsum("...sat,...t->...sa", mdp.transition, values)
    return np.asarray(mdp.reward + mdp.discount[..., None, None] * following)


def advantages(mdp: FiniteMDP, policy: Array) -> Array:
    r"""Return the advantages :math:`A^\pi(s,a) = Q^\pi(s,a) - V^\pi(s)`."""
    return np.asarray(action_values(mdp, policy) - state_values(mdp, policy)[..., None])


def visitation(mdp: FiniteMDP, policy: Array, start: Array | None = None) -> Array:
    r"""Return the discounted state visitation distribution.

    It is :math:`d^\pi_{\rho_0} = (1-\gamma)\, \rho_0^\top (I - \gamma P_\pi)^{-1}`.
    """
    lead = np.swapaxes(_resolvent(mdp, policy), -1, -2)
    rho = mdp.start if start is None else start
    visits = np.linalg.solve(lead, rho[..., None])[..., 0]
    return np.asarray((1.0 - mdp.discount)[..., None] * visits)


def expected_return(mdp: FiniteMDP, policy: Array) -> Array:
    r"""Return the expected return :math:`\mathcal{J}_\pi = \mathbf{E}_{s_0 \sim \rho_0}[V^\pi(s_0)]`.

    The paper's eq_accmulate_reward averages V over :math:`d^\pi_{\rho_0}` instead. That objective can prefer a worse
    policy (``paper_errors.objective_over_visits``), and the policy gradient theorem is about this one.
    """
    return np.asarray(np.sum(mdp.start * state_values(mdp, policy), axis=-1))


def performance_difference(mdp: FiniteMDP, policy: Array, other: Array) -> tuple[Array, Array]:
    r"""Return both sides of lemma:perfdiff, from every start state.

    .. math:: V^\pi(s_0) - V^{\pi'}(s_0)
        = \frac{1}{1-\gamma}\, \mathbf{E}_{s \sim d^\pi_{s_0}} \mathbf{E}_{a \sim \pi(\cdot|s)}
        [A^{\pi'}(s,a)].
    """
    left = np.asarray(state_values(mdp, policy) - state_values(mdp, other))
    states = policy.shape[-2]
    every_start = np.eye(states)
    many = mdp.per_index()
    visits = visitation(many, np.expand_dims(policy, -3), every_start)  # [..., s0, s]
    surplus = np.sum(policy * advantages(mdp, other), axis=-1)
    right = np.einsum("...us,...s->...u", visits, surplus) / (1.0 - mdp.discount)[..., None]
    return left, right


def random_mdp(rng: np.random.Generator, count: int, states: int, actions: int) -> FiniteMDP:
    """Draw random MDPs ``[count]``: sparse to dense transitions, signed rewards, discounts up to 0.99."""
    shape = np.exp(rng.uniform(np.log(0.1), np.log(3.0), (count, 1, 1, 1)))
    weight = rng.standard_gamma(np.broadcast_to(shape, (count, states, actions, states))) + 1e-12
    start = rng.dirichlet(np.ones(states), count)
    return FiniteMDP(
        transition=weight / weight.sum(axis=-1, keepdims=True),
        reward=rng.standard_normal((count, states, actions)),
        discount=rng.choice([0.0, 0.5, 0.9, 0.97, 0.99], count),
        start=start,
    )


def random_policy(rng: np.random.Generator, *shape: int) -> Array:
    """Draw random policies ``[..., states, actions]``, from near uniform to near deterministic."""
    spread = np.exp(rng.uniform(np.log(0.1), np.log(10.0), (*shape[:-2], 1, 1)))
    logits = rng.standard_normal(shape) * spread
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))
