r"""What the paper prints, executed to the letter, where the letter does not hold. Nothing else imports this
but ``counterexamples``; the mended versions are in ``transport``, ``operators`` and ``monotonicity``."""

from __future__ import annotations

import numpy as np

from gdi.theory.measures import Array, tilt


def lumped(mass: Array, known: list[int]) -> Array:
    r""":math:`\tilde\mu_m` of the proof of lemma:dct_R1: each known point holds its own mass and that of the
    unknown points between it and the next known point to its right; the leftmost one also holds all that lies
    left of it."""
    result = np.zeros_like(mass)
    places = sorted(known)
    for place, following in zip(places, [*places[1:], len(mass)], strict=True):
        result[place] = mass[0 if place == places[0] else place : following].sum()
    return result


def coupling_as_printed(mass: Array, g: Array, mended_ties: bool = False) -> Array:
    r"""The induction printed in the proof of lemma:dct_R1, for one instance: points enter in the order of g
    and split the mass of a *spatial* neighbour :math:`k^*`; "replacing :math:`x_m, x_{m+1}` by
    :math:`x_{k^*}, x_{k_{m+1}}`, we can construct :math:`\gamma_{m+1}` all the same way" as for increasing
    functions.

    Two slips. (1) The step needs :math:`k^*` to have the largest g so far, as m has in lemma:dct_inc_R1:
    otherwise rows above :math:`g(x_{k^*})` are told to send mass down to column :math:`k^*`, and row
    :math:`k^*` keeps entries in other columns that no longer fit into its halved mass. (2) For ties the
    printed new row is a multiple of :math:`\gamma_m(x_{k_{m+1}}, \cdot)`, which is zero since that point is
    only now entering, and all entries outside row and column :math:`k^*` are dropped. ``mended_ties`` splits
    row and column :math:`k^*` instead, so that slip (1) can be seen alone.
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
            gamma = _tie_mended(gamma, star, new, mu) if mended_ties else _tie_printed(gamma, star, new, mu, beta)
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


def _tie_mended(gamma: Array, star: int, new: int, mu: Array) -> Array:
    """Split row and column ``star``; where g ties, the shares of μ and of β are the same."""
    share = mu[star] / (mu[star] + mu[new])
    result = gamma.copy()
    result[new, :], result[star, :] = gamma[star, :] * (1.0 - share), gamma[star, :] * share
    result[:, new], result[:, star] = result[:, star] * (1.0 - share), result[:, star] * share
    return result


def obstruction(mass: Array, g: Array) -> tuple[float, float] | None:
    r"""Why slip (1) of ``coupling_as_printed`` cannot be cured by "adding some proper measure at proper
    points".

    Three points, entering as :math:`k_0, k_1, k_2`. On two points the coupling is unique, so
    :math:`\gamma_1(x_{k_0}, y_{k_1}) = \tilde\mu_1(x_{k_0}) - \tilde\beta_1(x_{k_0})`. Let
    :math:`k_2` split :math:`k^* = k_0`. The entrywise shrink by :math:`Z_1/Z_2` leaves column :math:`k_1`
    exactly full, so row :math:`k_0` must keep its shrunk entry there; row :math:`k_2`, of the largest g,
    cannot take it over. Returns (that entry, the mass row :math:`k_0` may hold in all); when the first is the
    larger, no filling exists. None where :math:`k_2` splits :math:`k_1` instead: the printed step is right.
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
