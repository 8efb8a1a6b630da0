"""Finite probability measures, and the one inequality on which the whole theory rests.

Arrays have any number of leading instance axes. The last axis runs over the points of Λ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The largest relative rounding error that does not count as a violation.
TOLERANCE = 1e-12


def tilt(mass: ArrayLike, g: ArrayLike, eta: ArrayLike = 1.0) -> Array:
    r"""Reweight a measure exponentially: :math:`\beta(x) = \mu(x)\, e^{\eta g(x)} / Z`.

    The labels are lemma:dct_R1 and asp:2.

    ``eta`` has the shape of the instances. Exponents are relative to the largest one on the support, so the largest
    weight is exactly one and no finite ``eta * g`` overflows. Points of zero mass keep zero mass.
    """
    mass, g = np.broadcast_arrays(np.asarray(mass, float), np.asarray(g, float))
    rate = np.asarray(eta, float)[..., None]
    if np.any(rate < 0):
        g, rate = np.where(rate < 0, -g, g), np.abs(rate)
    top = np.max(np.where(mass > 0, g, -np.inf), axis=-1, keepdims=True)
    # Off the support g may exceed `top`. The exponent is irrelevant there, and zero keeps it finite.
    with np.errstate(over="ignore"):
        exponent = np.where(mass > 0, rate * np.minimum(g - top, 0.0), 0.0)
    # Rescale first. Dividing by a sum of subnormal masses would lose its few significant bits.
    weight = mass / np.max(mass, axis=-1, keepdims=True) * np.exp(exponent)
    return np.asarray(weight / np.sum(weight, axis=-1, keepdims=True))


def mean(mass: Array, f: Array) -> Array:
    r"""Return the mean :math:`\mathbf{E}_\mu[f] = \sum_x \mu(x) f(x)`."""
    return np.asarray(np.sum(mass * f, axis=-1))


def mean_gain(before: Array, after: Array, f: Array) -> Array:
    r"""Return :math:`\mathbf{E}_\beta[f] - \mathbf{E}_\mu[f]`, with f centered first to keep digits."""
    centered = f - mean(before, f)[..., None]
    return mean(after, centered) - mean(before, centered)


def covariance_gain(mass: Array, f: Array, g: Array) -> Array:
    r"""Return the same gain as a covariance, summed over pairs and without :math:`\beta`.

    .. math:: \frac{\mathrm{Cov}_\mu(f, e^g)}{\mathbf{E}_\mu[e^g]}
        = \frac{\tfrac12 \sum_{x,y} \mu(x)\mu(y)\,(f(x)-f(y))\,(e^{g(x)}-e^{g(y)})}{\sum_x \mu(x)
        e^{g(x)}}.

    Every summand is non-negative if f and g are co-monotone. This is the whole theorem in one line (Chebyshev's
    association inequality). It needs neither an order on Λ, nor continuity, nor a transport.
    """
    top = np.max(np.where(mass > 0, g, -np.inf), axis=-1, keepdims=True)
    weight = np.exp(np.where(mass > 0, np.minimum(g - top, 0.0), -np.inf))
    pair = mass[..., :, None] * mass[..., None, :]
    rise = (f[..., :, None] - f[..., None, :]) * (weight[..., :, None] - weight[..., None, :])
    return np.asarray(0.5 * np.sum(pair * rise, axis=(-2, -1)) / mean(mass, weight))


def scale_of(f: Array) -> Array:
    """Return the size of f, by which margins are divided; it is one if f vanishes."""
    size = np.max(np.abs(f), axis=-1)
    return np.asarray(np.where(size > 0, size, 1.0))


def co_monotone(f: Array, g: Array) -> Bools:
    r"""Check asp:3: :math:`(f(x)-f(y))\,(g(x)-g(y)) \ge 0` for all pairs.

    The check compares signs, because products of tiny gaps underflow.
    """
    agree = np.sign(f[..., :, None] - f[..., None, :]) * np.sign(g[..., :, None] - g[..., None, :])
    return np.asarray(np.all(agree >= 0, axis=(-2, -1)))


def kl_divergence(q: Array, p: Array) -> Array:
    r"""Return :math:`\mathrm{KL}(q\,\|\,p) = \sum_x q(x) \log\frac{q(x)}{p(x)}`.

    It is infinite if p does not dominate q.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0, q * (np.log(q) - np.log(p)), 0.0)
    return np.asarray(np.sum(terms, axis=-1))
