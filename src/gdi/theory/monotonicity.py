r"""Theorems 1 and 2: how E, by moving :math:`\mathcal{P}_\Lambda`, changes T's target and improvement.

Both state :math:`\mathbf{E}_{\mathcal{P}^{(t+1)}}[f] \ge \mathbf{E}_{\mathcal{P}^{(t)}}[f]` for an f that is
co-monotone with :math:`\mathcal{L}_\mathcal{E}`. Here f and :math:`\mathcal{L}_\mathcal{E}` are taken at the same θ, as
in asp:3, asp:4 and the proofs. The theorems print f at :math:`\theta^{(t+1)}`, and are then false
(``counterexamples.moving_theta``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gdi.theory.mdp import FiniteMDP, advantages, visitation
from gdi.theory.measures import Array, mean, mean_gain
from gdi.theory.operators import reweight
from gdi.theory.policies import Indices, fisher, natural_direction, policy, return_gradients, returns


def target_gain(prior: Array, value_e: Array, value_t: Array, eta: ArrayLike) -> Array:
    r"""Return the gain of thm:1st_gdi with frozen θ: L_T(P(t+1), θ) - L_T(P(t), θ).

    It is non-negative under asp:2 and asp:3. With ``value_t`` = ``improvement_rates`` this is thm:2nd_gdi.
    """
    return mean_gain(prior, reweight(prior, value_e, eta), value_t)


def split_indices(index: Indices) -> Indices:
    """Return the indices as L problems with one index each, for parameters that differ between indices."""
    return Indices(index.u1[..., None], index.u2[..., None], index.epsilon[..., None])


def per_index_returns(mdp: FiniteMDP, thetas: Array, index: Indices) -> Array:
    r"""Return :math:`\mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda)` = J for each index with its own θ.

    The parameters are ``thetas[..., L, s, k, a]``.
    """
    return np.asarray(returns(mdp.per_index(), thetas, split_indices(index))[..., 0])


def per_index_step(mdp: FiniteMDP, thetas: Array, index: Indices, natural: bool) -> Array:
    r"""Return the gradient, or natural gradient, per index.

    These are :math:`\nabla_{\theta_\lambda} \mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda)` and
    :math:`\mathbf{F}^\dagger\nabla`.
    """
    single, many = split_indices(index), mdp.per_index()
    gradient = return_gradients(many, thetas, single)
    if natural:
        gradient = natural_direction(fisher(many, thetas, single), gradient)
    return np.asarray(gradient[..., 0, :, :, :])


def improvement_rates(mdp: FiniteMDP, thetas: Array, index: Indices, eta: float, natural: bool = False) -> Array:
    r"""Return the improvement rate of asp:4, where each index takes its own step.

    .. math:: G^\eta \mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda) = \tfrac1\eta
        [\mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda^\eta)
        - \mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda)].

    The paper prints the plain gradient in :math:`\theta_\lambda^\eta`, but calls T a natural gradient. ``natural`` uses
    the latter.
    """
    moved = thetas + eta * per_index_step(mdp, thetas, index, natural)
    return (per_index_returns(mdp, moved, index) - per_index_returns(mdp, thetas, index)) / eta


def suggested_value(mdp: FiniteMDP, thetas: Array, index: Indices, epsilon: float) -> Array:
    r"""Return the :math:`\mathcal{L}_\mathcal{E}` that the paper suggests for Theorem 2.

    It is :math:`\mathbf{E}_{s \sim d^\pi}\mathbf{E}_{a \sim \pi e^{\epsilon A^\pi}/Z}[A^\pi(s,a)]`.
    """
    many = mdp.per_index().per_index()
    acting = np.asarray(policy(thetas, split_indices(index)))
    lead = advantages(many, acting)
    surplus = mean(reweight(acting, lead, np.full(acting.shape[:-1], epsilon)), lead)
    return np.asarray(np.sum(visitation(many, acting) * surplus, axis=-1)[..., 0])
