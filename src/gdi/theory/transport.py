r"""The upper-triangular transport of the paper's appendix, built step by step as in its proofs.

It is a coupling ``gamma[i, j]`` of :math:`\mu` (rows) and :math:`\beta = \mu e^g / Z` (columns). It never moves mass to
a point of smaller g (the paper's UTTC, eq:UTTC_R1). If f rises with g, no unit of mass loses, hence
:math:`\mathbf{E}_\mu[f] \le \mathbf{E}_\beta[f]`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gdi.theory.measures import Array, mean_gain, tilt


def coupling_increasing(mass: ArrayLike, g: ArrayLike) -> Array:
    r"""Return the coupling of lemma:dct_inc_R1, for :math:`g_0 \le g_1 \le \dots`.

    In the lemma, :math:`g(x_i) = x_i`.

    This is the proof's induction. Stage m knows the points 0..m, with the mass of all later points lumped at m:
    :math:`\tilde\mu_m = (\mu_0, \dots, \mu_{m-1}, \sum_{i \ge m} \mu_i)`. Stage m+1 splits the lump. With
    :math:`t = e^{g_m - g_{m+1}}`, :math:`r = Z_m / Z_{m+1}` and :math:`b = \beta_m / (\beta_m + \beta_{m+1})`,

    * all entries shrink by r, which makes the columns j < m right;
    * each row i < m has lost :math:`(1-r)\mu_i`; this is added to its entry in column m, and the sum is
      shared between the columns m and m+1 as b : 1-b;
    * the corner becomes :math:`u = (\mu_m + \mu_{m+1})\,b,\; v = \mu_m - u,\; w = \mu_{m+1}` (eq:uvw_R1).

    r and b are computed from t and masses only, never from :math:`e^{g}`, so any finite g is safe. If the lump is
    empty, the proof divides zero by zero. Nothing is left to move then, and r = b = 1.
    """
    mass, g = np.broadcast_arrays(np.asarray(mass, float), np.asarray(g, float))
    if np.any(np.diff(g, axis=-1) < 0):
        raise ValueError("coupling_increasing needs g sorted in increasing order")
    points = mass.shape[-1]
    tail = np.cumsum(mass[..., ::-1], axis=-1)[..., ::-1]
    gamma = np.zeros((*mass.shape, points))
    gamma[..., 0, 0] = tail[..., 0]
    relative_z = tail[..., 0]  # Z_m / exp(g_m)
    for m in range(points - 1):
        here, lump = mass[..., m], tail[..., m + 1]
        fall = g[..., m] - g[..., m + 1]
        t = np.exp(fall)
        next_z = relative_z * t + lump * -np.expm1(fall)
        with np.errstate(invalid="ignore", divide="ignore"):
            grown = np.where(lump > 0, lump * -np.expm1(fall) / next_z, 0.0)  # 1 - r, by eq:Zm_inc
            b = np.where(lump > 0, here * t / (here * t + lump), 1.0)
        gamma[..., : m + 1, : m + 1] *= (1.0 - grown)[..., None, None]
        column = gamma[..., :m, m] + grown[..., None] * mass[..., :m]
        gamma[..., :m, m] = column * b[..., None]
        gamma[..., :m, m + 1] = column * (1.0 - b)[..., None]
        # v = mu_m - u is computed without the difference, as a product of non-negative factors (eq:v_exist).
        gamma[..., m, m] = (here + lump) * b
        gamma[..., m, m + 1] = np.where(lump > 0, (1.0 - b) * here * -np.expm1(fall), 0.0)
        gamma[..., m + 1, m + 1] = lump
        relative_z = next_z
    return gamma


def coupling(mass: ArrayLike, g: ArrayLike, ties_by: ArrayLike | None = None) -> Array:
    r"""Return the coupling of lemma:dct_R1 for any g on finitely many points, in any dimension.

    Sort the points by g, apply the induction of lemma:dct_inc_R1 in that order, and undo the sorting. The proof printed
    for lemma:dct_R1 also adds points in the order of g, but lumps waiting mass at neighbors in *space*. That induction
    breaks at three points (see ``as_printed.coupling_as_printed``). Lumping in the order of g fixes it, and makes the
    geometry of Λ irrelevant. The same function therefore serves :math:`\mathbf{R}^1` and :math:`\mathbf{R}^p`.

    The proof then uses that no unit of mass loses, :math:`\gamma(x_i, y_j)\,(f(y_j) - f(x_i)) \ge 0`. Its condition, no
    mass where :math:`g(x_i) > g(y_j)`, does not imply this. Mass may move between points of *equal* g, where a
    co-monotone f may fall. ``ties_by`` = f orders ties of g by f, and then no unit loses.
    """
    mass, g = np.broadcast_arrays(np.asarray(mass, float), np.asarray(g, float))
    second = np.zeros_like(g) if ties_by is None else np.broadcast_to(np.asarray(ties_by, float), g.shape)
    order = np.lexsort((second, g), axis=-1)
    in_order = coupling_increasing(np.take_along_axis(mass, order, axis=-1), np.take_along_axis(g, order, axis=-1))
    return _unsort(in_order, order)


def _unsort(in_order: Array, order: NDArray[np.intp]) -> Array:
    """Restore the original order of the points in a coupling of sorted points."""
    rank = np.argsort(order, axis=-1)
    rows = np.take_along_axis(in_order, rank[..., :, None], axis=-2)
    return np.asarray(np.take_along_axis(rows, rank[..., None, :], axis=-1))


def coupling_on_grid(mass: ArrayLike, g: ArrayLike, dimensions: int) -> Array:
    r"""Return the coupling of lemma:dct_Rp on a grid.

    ``mass`` and ``g`` end in p grid axes, and gamma ends in p row axes and then p column axes. The paper's order on
    :math:`\{0,\dots,n\}^p` is lexicographic, which is NumPy's order of flattening.
    """
    mass, g = np.asarray(mass, float), np.asarray(g, float)
    lead, grid = mass.shape[: mass.ndim - dimensions], mass.shape[mass.ndim - dimensions :]
    flat = coupling(mass.reshape(*lead, -1), g.reshape(*lead, -1))
    return flat.reshape(*lead, *grid, *grid)


def quantile_coupling(mass: ArrayLike, g: ArrayLike) -> Array:
    r"""Return another upper-triangular coupling, which matches equal quantiles in the order of g.

    :math:`\gamma(\{\le i\} \times \{\le j\}) = \min(F_\mu(i), F_\beta(j))`. It needs no induction. It is
    upper-triangular if and only if β dominates μ stochastically, so it checks the *existence* that the paper's
    induction proves.
    """
    mass, g = np.broadcast_arrays(np.asarray(mass, float), np.asarray(g, float))
    order = np.argsort(g, axis=-1, kind="stable")
    below_mu = np.cumsum(np.take_along_axis(mass, order, axis=-1), axis=-1)
    below_beta = np.cumsum(np.take_along_axis(tilt(mass, g), order, axis=-1), axis=-1)
    joint = np.minimum(below_mu[..., :, None], below_beta[..., None, :])
    in_order = np.diff(np.diff(joint, axis=-2, prepend=0.0), axis=-1, prepend=0.0)
    return _unsort(in_order, order)


@dataclass(frozen=True)
class CouplingErrors:
    """The distance of ``gamma`` from eq:UTTC_R1 per instance, in units of probability.

    All values are zero for a valid transport.
    """

    rows: Array
    columns: Array
    negative: Array
    support: Array

    @property
    def worst(self) -> Array:
        return np.asarray(np.max([self.rows, self.columns, self.negative, self.support], axis=0))


def coupling_errors(gamma: Array, mass: Array, g: Array) -> CouplingErrors:
    r"""Check eq:UTTC_R1.

    Rows sum to μ and columns to β, no mass is negative, and there is none where :math:`g(x_i) > g(y_j)`.
    """
    downhill = g[..., :, None] > g[..., None, :]
    return CouplingErrors(
        rows=np.max(np.abs(gamma.sum(axis=-1) - mass), axis=-1),
        columns=np.max(np.abs(gamma.sum(axis=-2) - tilt(mass, g)), axis=-1),
        negative=np.max(np.maximum(-gamma, 0.0), axis=(-2, -1)),
        support=np.max(np.where(downhill, np.abs(gamma), 0.0), axis=(-2, -1)),
    )


def unit_gains(gamma: Array, f: Array) -> Array:
    r"""Return the gain of each unit of transported mass, ``[..., i, j]``.

    It is :math:`\gamma(x_i, y_j)\,(f(y_j) - f(x_i))`.
    """
    return gamma * (f[..., None, :] - f[..., :, None])


def transport_disagreement(gamma: Array, mass: Array, f: Array, g: Array) -> Array:
    """Return the gap between the gain summed along the transport and the gain of the expectations."""
    return np.asarray(np.abs(unit_gains(gamma, f).sum(axis=(-2, -1)) - mean_gain(mass, tilt(mass, g), f)))
