r"""The paper's constructions exactly as printed, where they do not hold.

Only ``paper_errors`` imports this module. The corrected versions are in ``transport``, ``operators`` and
``monotonicity``.
"""

from __future__ import annotations

import numpy as np

from gdi.theory.measures import Array, tilt


def lumped(mass: Array, known: list[int]) -> Array:
    r"""Return the lumped masses :math:`\tilde\mu_m` of the proof of lemma:dct_R1.

    Each known point holds its own mass and that of the unknown points between it and the next known point to its right.
    The leftmost one also holds everything to its left.
    """
    result = np.zeros_like(mass)
    places = sorted(known)
    for place, following in zip(places, [*places[1:], len(mass)], strict=True):
        result[place] = mass[0 if place == places[0] else place : following].sum()
    return result


def coupling_as_printed(mass: Array, g: Array, fix_ties: bool = False) -> Array:
    r"""Run the induction printed in the proof of lemma:dct_R1 on one instance.

    Points enter in the order of g and split the mass of a *spatial* neighbor :math:`k^*`. The paper says: "replacing
    :math:`x_m, x_{m+1}` by :math:`x_{k^*}, x_{k_{m+1}}`, we can construct :math:`\gamma_{m+1}` all the same way" as for
    increasing functions.

    There are two errors. (1) The step needs :math:`k^*` to have the largest g so far, as m has in lemma:dct_inc_R1.
    Otherwise rows above :math:`g(x_{k^*})` must send mass down to column :math:`k^*`. Row :math:`k^*` also keeps
    entries in other columns that no longer fit into its halved mass. (2) For ties the printed new row is a multiple of
    :math:`\gamma_m(x_{k_{m+1}}, \cdot)`. That row is zero, because the point has not entered yet. All entries outside
    row and column :math:`k^*` are dropped.

    ``fix_ties`` splits row and column :math:`k^*` instead, so that error (1) appears alone.
    """
    order = [int(k) for k in np.argsort(g, kind="stable")]
    known = order[:1]
    gamma = np.zeros((len(mass), len(mass)))
    gamma[order[0], order[0]] = 1.0
    for new in order[1:]:
        left = [k for k in known if k < new]
        star = max(left) if left else min(known)
        before, mu = lumped(mass, known), lumped(mass, [*known, new])
        shift = float(np.max(g))
        z_before, z_after = np.sum(before * np.exp(g - shift)), np.sum(mu * np.exp(g - shift))
        beta = tilt(mu, g)
        if g[star] == g[new]:
            gamma = _split_tie(gamma, star, new, mu) if fix_ties else _tie_printed(gamma, star, new, mu, beta)
        else:
            shrink = z_before / z_after
            b = beta[star] / (beta[star] + beta[new])
            following = gamma * shrink
            for i in known:
                if i != star:
                    column = gamma[i, star] * shrink + (1.0 - shrink) * mu[i]
                    following[i, star], following[i, new] = column * b, column * (1.0 - b)
            following[star, star] = (mu[star] + mu[new]) * b
            following[star, new] = mu[star] - following[star, star]
            following[new, new] = mu[new]
            gamma = following
        known.append(new)
    return gamma


def _tie_printed(gamma: Array, star: int, new: int, mu: Array, beta: Array) -> Array:
    share = mu[star] / (mu[star] + mu[new])
    result = np.zeros_like(gamma)  # "0, others"
    result[star, :] = gamma[star, :] * share
    result[new, :] = gamma[new, :] * (1.0 - share)
    result[:, star] = gamma[:, star] * beta[star] / (beta[star] + beta[new])
    result[:, new] = gamma[:, new] * beta[new] / (beta[star] + mu[new])
    result[star, star] = gamma[star, star] * share
    result[new, new] = gamma[new, new] * (1.0 - share)
    return result


def _split_tie(gamma: Array, star: int, new: int, mu: Array) -> Array:
    """Split row and column ``star``; at ties of g, μ and β are shared alike."""
    share = mu[star] / (mu[star] + mu[new])
    result = gamma.copy()
    result[new, :], result[star, :] = gamma[star, :] * (1.0 - share), gamma[star, :] * share
    result[:, new], result[:, star] = result[:, star] * (1.0 - share), result[:, star] * share
    return result


def obstruction(mass: Array, g: Array) -> tuple[float, float] | None:
    r"""Show that "adding some proper measure at proper points" cannot fix error (1).

    The error is that of ``coupling_as_printed``. Three points enter as :math:`k_0, k_1, k_2`. On two points the
    coupling is unique, so :math:`\gamma_1(x_{k_0}, y_{k_1}) = \tilde\mu_1(x_{k_0}) - \tilde\beta_1(x_{k_0})`. Let
    :math:`k_2` split :math:`k^* = k_0`. Shrinking all entries by :math:`Z_1/Z_2` leaves column :math:`k_1` exactly
    full. Row :math:`k_0` must therefore keep its shrunk entry there, because row :math:`k_2`, with the largest g,
    cannot take it over.

    Return that entry and the total mass that row :math:`k_0` may hold. If the entry is larger, no filling exists.
    Return None if :math:`k_2` splits :math:`k_1`, where the printed step is correct.
    """
    if len(mass) != 3 or len(set(g.tolist())) != 3:
        raise ValueError("the obstruction is stated for three points with distinct g")
    lowest, middle, highest = (int(k) for k in np.argsort(g))
    left = [k for k in (lowest, middle) if k < highest]
    if (max(left) if left else min(lowest, middle)) != lowest:
        return None
    one, two = lumped(mass, [lowest, middle]), mass
    weight = np.exp(g - np.max(g))
    shrink = np.sum(one * weight) / np.sum(two * weight)
    return float(shrink * (one[lowest] - tilt(one, g)[lowest])), float(mass[lowest])
