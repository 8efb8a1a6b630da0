r"""GDI-I^n and GDI-H^n, with or without E, derived from a description (Λ, Θ, P⁰, E).

The paper's definitions are in the section "Systematization of GDI". The class is I if :math:`\theta = \theta_\lambda`
for all λ, and H if :math:`\theta_{\lambda_1} \ne \theta_{\lambda_2}` for some pair. n is the degree of freedom of Λ.
It is "w/o E" if E is the identity. Two interpretations are needed to reproduce the paper's own table:

* n counts the axes on which the *support of P⁰* varies. The paper calls Fixed Selection GDI-I^0, although its Λ
  is three-dimensional, because its P⁰ is a point mass.
* :math:`\theta_\lambda` holds the families that have weight in :math:`\pi_{\theta_\lambda}`. GDI-H^3 mixes
  both of its families at every 0 < ε < 1. It is heterogeneous because ε = 0 uses only one, and ε = 1 only the
  other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from gdi.theory.measures import Array, tilt

Point = tuple[float, ...]
OperatorE = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class GDIClass:
    """The derived class; ``str`` formats it as the paper does: GDI-I^3, GDI-I^0 w/o E."""

    heterogeneous: bool
    degree: int
    with_e: bool

    def __str__(self) -> str:
        return f"GDI-{'H' if self.heterogeneous else 'I'}^{self.degree}{'' if self.with_e else ' w/o E'}"


@dataclass(frozen=True)
class Axis:
    """One coordinate of Λ with its values; a continuous range is given by points, including its ends."""

    name: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values) or not self.values:
            raise ValueError(f"axis {self.name} needs values, all different")


@dataclass(frozen=True)
class Algorithm:
    """An algorithm in GDI's terms.

    ``families`` maps λ to the names of the parameter families in θ_λ. ``prior`` gives P⁰ and ``operator_e`` gives E
    over all of Λ, the product of the axes in the order of ``points``.
    """

    name: str
    axes: tuple[Axis, ...]
    families: Callable[[Point], frozenset[str]]
    prior: Callable[[int], Array]
    operator_e: OperatorE
    describes: tuple[str, str, str, str]
    """Λ, Θ, P⁰ and E in words for the table; the class is derived from the other fields."""

    def points(self) -> list[Point]:
        return list(product(*(axis.values for axis in self.axes)))


def classify(algorithm: Algorithm) -> GDIClass:
    """Derive the class.

    It depends on the axes that P⁰ varies on, on whether θ_λ depends on λ, and on whether E reacts to returns.
    """
    points = algorithm.points()
    prior = algorithm.prior(len(points))
    if prior.shape != (len(points),) or np.any(prior < 0) or not np.isclose(prior.sum(), 1.0):
        raise ValueError(f"{algorithm.name}: the prior must be one probability per index")
    support = [point for point, weight in zip(points, prior, strict=True) if weight > 0]
    degree = sum(len({point[axis] for point in support}) > 1 for axis in range(len(algorithm.axes)))
    families = {algorithm.families(point) for point in points}
    return GDIClass(len(families) > 1, degree, not is_identity(algorithm.operator_e, prior))


def is_identity(operator_e: OperatorE, prior: Array) -> bool:
    """Return whether E leaves P unchanged for any returns of the indices.

    Each index in turn is made the best, then the worst.
    """
    count = len(prior)
    bumps = np.eye(count)[np.linspace(0, count - 1, min(count, 16)).astype(int)]
    return all(np.allclose(operator_e(prior, sign * bump), prior) for bump in bumps for sign in (1.0, -1.0))


def uniform(count: int) -> Array:
    return np.full(count, 1.0 / count)


def point_mass(count: int) -> Array:
    return np.asarray(np.eye(count)[0])


# The class depends only on whether an operator moves P.


def identity(prior: Array, returns: Array) -> Array:
    return prior


def bandit(prior: Array, returns: Array) -> Array:
    """Model a greedy bandit that keeps exploring: most mass goes to the best return, and ties share it."""
    best = (returns == returns.max()) & (prior > 0)
    if not best.any():
        return prior
    return np.asarray(0.9 * best / best.sum() + 0.1 * prior)


def weighted_archive(prior: Array, returns: Array) -> Array:
    """Model a search by weights, where indices with higher returns are tried more often."""
    return tilt(prior, returns)


def exploit_within_members(members: int) -> OperatorE:
    """Model PBT's E: P(·, i) moves within each member i, toward hyperparameters with higher returns.

    Every member keeps its share.
    """

    def operator_e(prior: Array, returns: Array) -> Array:
        table, seen = prior.reshape(-1, members), returns.reshape(-1, members)
        return np.asarray((tilt(table.T, seen.T) * table.sum(axis=0)[:, None]).T.ravel())

    return operator_e


def shared(point: Point) -> frozenset[str]:
    """Return one θ for every index."""
    return frozenset({"theta"})


def by_coordinate(axis: int, stem: str = "theta") -> Callable[[Point], frozenset[str]]:
    """Return one family of parameters for each value of one coordinate."""
    return lambda point: frozenset({f"{stem}_{point[axis]:g}"})
