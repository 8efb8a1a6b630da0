r"""The paper's soft ε-greedy policy space on a finite MDP, with its exact gradients.

The label is equ: soft epsilon policy space.

.. math:: \pi_{\theta_\lambda} = \epsilon\,\mathrm{Softmax}(u_1 \theta_1) + (1-\epsilon)\,\mathrm{Softmax}(u_2
    \theta_2),
    \qquad \lambda = (u_1, u_2, \epsilon),\; u = 1/\tau.

``theta[..., s, k, a]`` holds K families of tabular logits. K = 1 is GDI-I (:math:`\theta_1 = \theta_2`), and K = 2 is
GDI-H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdi.theory.mdp import FiniteMDP, action_values, expected_return, visitation
from gdi.theory.measures import Array


@dataclass(frozen=True)
class Indices:
    r"""Indices λ, ``[..., L]`` each: inverse temperatures u₁, u₂ ≥ 0 and the mixture weight ε in [0, 1]."""

    u1: Array
    u2: Array
    epsilon: Array

    def __post_init__(self) -> None:
        if np.any(self.u1 < 0) or np.any(self.u2 < 0) or np.any(self.epsilon < 0) or np.any(self.epsilon > 1):
            raise ValueError("an index needs u1 >= 0, u2 >= 0 and 0 <= epsilon <= 1")

    @staticmethod
    def temperatures(*u: float) -> Indices:
        """Return Boltzmann policies Softmax(u θ), one index per u (the paper's Boltzmann Selection)."""
        rates = np.asarray(u, float)
        return Indices(rates, np.zeros_like(rates), np.ones_like(rates))

    @staticmethod
    def explorers(*epsilon: float, u: float = 1.0) -> Indices:
        """Return ε·uniform + (1-ε)·Softmax(u θ), one index per ε (the paper's ε-greedy Selection, softened)."""
        share = np.asarray(epsilon, float)
        return Indices(np.zeros_like(share), np.full_like(share, u), share)


def softmax(logits: Array) -> Array:
    shifted = logits - np.max(logits.real, axis=-1, keepdims=True)
    weight = np.exp(shifted)
    return np.asarray(weight / np.sum(weight, axis=-1, keepdims=True))


def _components(theta: Array, index: Indices) -> tuple[tuple[Array, Array, int], ...]:
    """Return both components.

    Each is its softmax ``[..., L, s, a]``, its sensitivity weight·u ``[..., L]``, and its family.
    """
    spread = np.expand_dims(theta, -4)  # [..., 1, s, k, a]
    second = theta.shape[-2] - 1
    first = softmax(index.u1[..., None, None] * spread[..., 0, :])
    last = softmax(index.u2[..., None, None] * spread[..., second, :])
    return (first, index.epsilon * index.u1, 0), (last, (1.0 - index.epsilon) * index.u2, second)


def policy(theta: Array, index: Indices) -> Array:
    r"""Return :math:`\pi_{\theta_\lambda}(a|s)` for every index, ``[..., L, s, a]``."""
    (first, _, _), (last, _, _) = _components(theta, index)
    share = index.epsilon[..., None, None]
    return np.asarray(share * first + (1.0 - share) * last)


def jacobian(theta: Array, index: Indices) -> Array:
    r"""Return the derivatives of the policy in the logits, ``[..., L, s, a, k, b]``.

    They are :math:`\partial \pi_{\theta_\lambda}(a|s) / \partial \theta_k(s,b)`.
    """
    parts = _components(theta, index)
    families, actions = theta.shape[-2:]
    shape = parts[0][0].shape
    result = np.zeros((*shape, families, actions))
    others = 1.0 - np.eye(actions)
    for probability, sensitivity, family in parts:
        # Compute 1 - p as the sum of the other probabilities, so that a saturated softmax keeps all digits of its
        # slope.
        rest = probability @ others
        slope = np.eye(actions) * (probability * rest)[..., None]
        slope -= others * probability[..., :, None] * probability[..., None, :]
        result[..., family, :] += sensitivity[..., None, None, None] * slope
    return result


def returns(mdp: FiniteMDP, theta: Array, index: Indices) -> Array:
    r"""Return :math:`\mathcal{J}_{\pi_{\theta_\lambda}}` for every index, ``[..., L]``."""
    return expected_return(mdp.per_index(), policy(theta, index))


def return_gradients(mdp: FiniteMDP, theta: Array, index: Indices) -> Array:
    r"""Return the gradients of the policy gradient theorem, ``[..., L, s, k, b]``.

    .. math:: \nabla_\theta \mathcal{J}_{\pi_{\theta_\lambda}}
        = \frac{1}{1-\gamma} \sum_s d^\pi_{\rho_0}(s) \sum_a Q^\pi(s,a)\, \nabla_\theta
        \pi_{\theta_\lambda}(a|s).
    """
    many = mdp.per_index()
    acting = policy(theta, index)
    flow = visitation(many, acting) / (1.0 - many.discount)[..., None]
    slopes = np.einsum("...sakb,...sa->...skb", jacobian(theta, index), action_values(many, acting))
    return np.asarray(flow[..., None, None] * slopes)


def fisher(mdp: FiniteMDP, theta: Array, index: Indices) -> Array:
    r"""Return the Fisher matrix, one block per state, ``[..., L, s, k·b, k·b]``.

    It is :math:`\mathbf{F} = \mathbf{E}_{s \sim d^\pi, a \sim \pi}[\nabla\log\pi\,\nabla\log\pi^\top]`. Blocks of
    different states do not interact in a tabular policy.
    """
    many = mdp.per_index()
    acting = policy(theta, index)
    slopes = jacobian(theta, index).reshape(*acting.shape, -1)
    # The score is at most u1 + u2 for any probability, so dividing first never overflows.
    score = np.divide(slopes, acting[..., None], out=np.zeros_like(slopes), where=acting[..., None] > 0)
    weight = visitation(many, acting)[..., None] * acting
    return np.asarray(np.einsum("...sam,...sa,...san->...smn", score, weight, score))


def natural_direction(information: Array, gradient: Array) -> Array:
    r"""Return :math:`\mathbf{F}^\dagger \nabla` with the Moore-Penrose pseudoinverse.

    Softmax logits have a null direction.
    """
    size = np.max(np.abs(information), axis=(-2, -1), keepdims=True)
    # F and its gradient both contain the factor d(s). Dividing it out first keeps rarely visited states exact. A state
    # that is never visited has no direction.
    seen = size > 1e-280
    information = np.where(seen, information / np.where(seen, size, 1.0), 0.0)
    flat = gradient.reshape(*gradient.shape[:-2], -1, 1)
    flat = np.where(seen, flat / np.where(seen, size, 1.0), 0.0)
    moved = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ flat
    return np.asarray(moved[..., 0].reshape(gradient.shape))
