r"""Theorems 1 and 2: what moving :math:`\mathcal{P}_\Lambda` by E does to the target and to the improvement
of T.

Both say :math:`\mathbf{E}_{\mathcal{P}^{(t+1)}}[f] \ge \mathbf{E}_{\mathcal{P}^{(t)}}[f]` for an f
co-monotone with :math:`\mathcal{L}_\mathcal{E}`. Here f and :math:`\mathcal{L}_\mathcal{E}` are taken at one
and the same θ, as asp:3, asp:4 and the proofs take them; the theorems print f at :math:`\theta^{(t+1)}`, and
then they are false (``counterexamples.moving_theta``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gdi.theory.mdp import FiniteMDP, advantages, visitation
from gdi.theory.measures import Array, mean, mean_gain
from gdi.theory.operators import reweight
from gdi.theory.policies import Indices, fisher, natural_direction, policy, return_gradients, returns


def target_gain(prior: Array, value_e: Array, value_t: Array, eta: ArrayLike) -> Array:
    r"""thm:1st_gdi with θ frozen: L_T(P(t+1), θ) - L_T(P(t), θ).

    Non-negative under asp:2 and asp:3. thm:2nd_gdi is the same line with ``value_t`` = ``improvement_rates``.
    """
    return mean_gain(prior, reweight(prior, value_e, eta), value_t)


def own(index: Indices) -> Indices:
    """The indices as L problems of one index each, for parameters that differ between indices."""
    return Indices(index.u1[..., None], index.u2[..., None], index.epsilon[..., None])


def own_returns(mdp: FiniteMDP, thetas: Array, index: Indices) -> Array:
    r""":math:`\mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda)` = J for ``thetas[..., L, s, k, a]``, one θ
    per index."""
    return np.asarray(returns(mdp.per_index(), thetas, own(index))[..., 0])


def own_step(mdp: FiniteMDP, thetas: Array, index: Indices, natural: bool) -> Array:
    r""":math:`\nabla_{\theta_\lambda} \mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda)`, or
    :math:`\mathbf{F}^\dagger\nabla`, per index."""
    single, many = own(index), mdp.per_index()
    gradient = return_gradients(many, thetas, single)
    if natural:
        gradient = natural_direction(fisher(many, thetas, single), gradient)
    return np.asarray(gradient[..., 0, :, :, :])


def improvement_rates(mdp: FiniteMDP, thetas: Array, index: Indices, eta: float, natural: bool = False) -> Array:
    r"""The improvement rate of asp:4, each index stepping on its own:

    .. math:: G^\eta \mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda) = \tfrac1\eta
              [\mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda^\eta)
              - \mathcal{L}_\mathcal{T}(\lambda, \theta_\lambda)].

    The paper prints the plain gradient in :math:`\theta_\lambda^\eta` though it calls T a natural gradient;
    ``natural`` takes the latter.
    """
    moved = thetas + eta * own_step(mdp, thetas, index, natural)
    return (own_returns(mdp, moved, index) - own_returns(mdp, thetas, index)) / eta


def suggested_value(mdp: FiniteMDP, thetas: Array, index: Indices, epsilon: float) -> Array:
    r"""The :math:`\mathcal{L}_\mathcal{E}` the paper suggests for Theorem 2:
    :math:`\mathbf{E}_{s \sim d^\pi}\mathbf{E}_{a \sim \pi e^{\epsilon A^\pi}/Z}[A^\pi(s,a)]`."""
    many = mdp.per_index().per_index()
    acting = np.asarray(policy(thetas, own(index)))
    lead = advantages(many, acting)
    surplus = mean(reweight(acting, lead, np.full(acting.shape[:-1], epsilon)), lead)
    return np.asarray(np.sum(visitation(many, acting) * surplus, axis=-1)[..., 0])
