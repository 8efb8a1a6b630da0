r"""The exact operators of Algorithm 1 (alg:GDI): E moves :math:`\mathcal{P}_\Lambda`, and T moves θ.

Each has a first-order (gradient) and a second-order (natural gradient) form. ``prior[..., L]`` is
:math:`\mathcal{P}^{(t)}_\Lambda`, and ``value[..., L]`` is :math:`\mathcal{L}_\mathcal{E}(\lambda, \theta_\lambda)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gdi.theory.mdp import FiniteMDP
from gdi.theory.measures import Array, kl_divergence, mean, tilt
from gdi.theory.policies import Indices, fisher, natural_direction, return_gradients


def reweight(prior: Array, value: Array, eta: ArrayLike) -> Array:
    r"""Apply E of asp:2.

    :math:`\mathcal{P}^{(t+1)}(\lambda) = \mathcal{P}^{(t)}(\lambda)\, e^{\eta r_\lambda} / Z` with :math:`r_\lambda =
    \mathcal{L}_\mathcal{E}(\lambda, \theta_\lambda)`.
    """
    return tilt(prior, value, eta)


def identity(prior: Array, value: Array, eta: ArrayLike) -> Array:
    r"""Leave P unchanged for any observation ("w/o E"): :math:`\mathcal{P}^{(t+1)} = \mathcal{P}^{(t)}`."""
    return prior


def kl_objective(candidate: Array, prior: Array, value: Array, eta: ArrayLike) -> Array:
    r"""Return the objective that E (asp:2) maximizes.

    It is :math:`\mathbf{E}_P[r] - \tfrac1\eta \mathrm{KL}(P\,\|\,\mathcal{P}^{(t)})`.

    The paper's remark has η in place of 1/η. The maximizer is then :math:`\mathcal{P}^{(t)} e^{r/\eta}/Z`.
    """
    return np.asarray(mean(candidate, value) - kl_divergence(candidate, prior) / np.asarray(eta, float))


def kl_gap(candidate: Array, prior: Array, value: Array, eta: ArrayLike) -> tuple[Array, Array]:
    r"""Return both sides of the identity that makes E of asp:2 *the* maximizer, for every candidate P.

    .. math:: F(\mathcal{P}^{(t+1)}) - F(P) = \tfrac{1}{\eta} \mathrm{KL}(P \,\|\, \mathcal{P}^{(t+1)}) \ge 0,

    where F is ``kl_objective``. Equality holds only at :math:`P = \mathcal{P}^{(t+1)}`.
    """
    best = reweight(prior, value, eta)
    gap = kl_objective(best, prior, value, eta) - kl_objective(candidate, prior, value, eta)
    return gap, kl_divergence(candidate, best) / np.asarray(eta, float)


def softmax_fisher(prior: Array) -> Array:
    r"""Return the Fisher matrix of :math:`P = \mathrm{Softmax}(\phi)`.

    :math:`\mathbf{F} = \mathbf{E}_P[\nabla\log P\,\nabla\log P^\top] = \mathrm{diag}(P) - P P^\top`. The paper prints F
    without its expectation.
    """
    return np.eye(prior.shape[-1]) * prior[..., None, :] - prior[..., :, None] * prior[..., None, :]


def softmax_gradient(prior: Array, value: Array) -> Array:
    r"""Return the gradient of the mean of r in the logits of :math:`P = \mathrm{Softmax}(\phi)`.

    It is :math:`\nabla_\phi \mathbf{E}_P[r] = P\,(r - \mathbf{E}_P[r])`.
    """
    return prior * (value - mean(prior, value)[..., None])


def reweight_by_natural_gradient(prior: Array, value: Array, eta: ArrayLike) -> Array:
    r"""Apply second-order E, :math:`\phi + \eta\,\mathbf{F}^\dagger \nabla_\phi`, then Softmax.

    It equals ``reweight`` exactly. :math:`\mathbf{F} (r + c\mathbf{1}) = P(r - \mathbf{E}_P[r])` for every c, so the
    step is r up to a constant that Softmax ignores. The code uses ``tilt(prior, step)``, because
    :math:`\mathrm{Softmax}(\phi + x) = P e^{x}/Z`.
    """
    step = np.linalg.pinv(softmax_fisher(prior), rcond=1e-10, hermitian=True)
    return tilt(prior, (step @ softmax_gradient(prior, value)[..., None])[..., 0], eta)


def reweight_by_softmax_gradient(prior: Array, value: Array, eta: ArrayLike) -> Array:
    r"""Apply first-order E in softmax logits, :math:`\phi + \eta P(r - \mathbf{E}_P[r])`.

    This is *not* of the form of asp:2. The step of an index is scaled by its own probability, and Theorem 1 can fail
    (``counterexamples.other_controller``).
    """
    return tilt(prior, softmax_gradient(prior, value), eta)


def project_to_simplex(point: Array) -> Array:
    r"""Return the nearest distribution in Euclidean distance.

    It is :math:`\max(x - \nu, 0)` with ν such that it sums to one.
    """
    falling = -np.sort(-point, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1.0
    count = np.arange(1, point.shape[-1] + 1)
    active = np.sum(falling * count > excess, axis=-1, keepdims=True)
    level = np.take_along_axis(excess, active - 1, axis=-1) / active
    return np.asarray(np.maximum(point - level, 0.0))


def reweight_by_projected_gradient(prior: Array, value: Array, eta: ArrayLike) -> Array:
    r"""Apply first-order E to the probabilities themselves, and project back to the simplex.

    The step is :math:`\mathcal{P} + \eta \nabla_\mathcal{P}\mathbf{E}_\mathcal{P}[r] = \mathcal{P} + \eta r`, which
    alone leaves the simplex.

    This is not of the form of asp:2 either, yet Theorem 1 holds. The change is :math:`\max(\eta r - \nu,
    -\mathcal{P})`. It is negative below one level of r and non-negative above it, and the inequality needs no more.
    """
    centered = value - np.max(value, axis=-1, keepdims=True)
    return project_to_simplex(prior + np.asarray(eta, float)[..., None] * centered)


def improve(mdp: FiniteMDP, theta: Array, index: Indices, weights: Array, step: float) -> Array:
    r"""Apply first-order T.

    The step is :math:`\theta + \alpha\,\nabla_\theta \mathbf{E}_{\mathcal{P}_\Lambda}[\mathcal{J}]`.
    """
    gradient = np.einsum("...l,...lskb->...skb", weights, return_gradients(mdp, theta, index))
    return np.asarray(theta + step * gradient)


def improve_natural(mdp: FiniteMDP, theta: Array, index: Indices, weights: Array, step: float) -> Array:
    r"""Apply second-order T: :math:`\theta + \alpha\,\mathbf{F}^\dagger \nabla_\theta`.

    Both factors are averaged over :math:`\mathcal{P}_\Lambda`.
    """
    gradient = np.einsum("...l,...lskb->...skb", weights, return_gradients(mdp, theta, index))
    information = np.einsum("...l,...lsmn->...smn", weights, fisher(mdp, theta, index))
    return theta + step * natural_direction(information, gradient)
