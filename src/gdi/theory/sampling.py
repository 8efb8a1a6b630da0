"""Random instances of the theorems' hypotheses, deliberately including degenerate ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gdi.theory.measures import Array


@dataclass(frozen=True)
class Problem:
    """A batch of instances ``[B, N]``: a probability measure and two functions on N points."""

    mass: Array
    f: Array
    g: Array


def batches(trials: int, sizes: tuple[int, ...], largest: int = 2000) -> Iterator[tuple[int, int]]:
    """Split ``trials`` evenly over ``sizes``.

    Return pairs (size, count) whose counts are at most ``largest`` and sum to ``trials``.
    """
    for position, size in enumerate(sizes):
        left = trials // len(sizes) + (position < trials % len(sizes))
        while left:
            yield size, min(left, largest)
            left -= min(left, largest)


def random_mass(rng: np.random.Generator, count: int, points: int) -> Array:
    """Draw probability measures ``[count, points]``, from flat to spiky.

    A quarter have points of zero mass, and some are point masses.
    """
    shape = np.exp(rng.uniform(np.log(0.1), np.log(10.0), (count, 1)))
    weight = rng.standard_gamma(np.broadcast_to(shape, (count, points))) + 1e-300
    holes = (rng.random((count, points)) < 0.4) & (rng.random((count, 1)) < 0.25)
    keep = rng.integers(points, size=count)
    weight[holes] = 0.0
    weight[np.arange(count), keep] += 1e-3  # at least one point has mass
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def random_levels(rng: np.random.Generator, count: int, points: int, largest: float) -> Array:
    """Draw non-decreasing rows ``[count, points]`` with ties, with random centers.

    Scales range from 1e-3 to ``largest``.
    """
    steps = rng.standard_exponential((count, points)) * (rng.random((count, points)) < 0.7)
    scale = np.exp(rng.uniform(np.log(1e-3), np.log(largest), (count, 1)))
    levels = np.cumsum(steps, axis=-1) * scale
    return np.asarray(levels - levels[:, :1] - rng.random((count, 1)) * (levels[:, -1:] - levels[:, :1]))


def random_comonotone(
    rng: np.random.Generator, count: int, points: int, largest_g: float = 1e3, mass: Array | None = None
) -> Problem:
    """Draw co-monotone f and g.

    Two functions on a finite set are co-monotone if and only if one order sorts both. Sorting two random rows and
    shuffling them alike therefore draws from all such pairs, including ties in either.
    """
    order = np.argsort(rng.random((count, points)), axis=-1)
    f = np.take_along_axis(random_levels(rng, count, points, 10.0), order, axis=-1)
    g = np.take_along_axis(random_levels(rng, count, points, largest_g), order, axis=-1)
    return Problem(random_mass(rng, count, points) if mass is None else mass, f, g)


def random_unrelated(rng: np.random.Generator, count: int, points: int) -> Problem:
    """Draw f and g independently, which drops asp:3."""
    mass = rng.dirichlet(np.ones(points), count)
    return Problem(mass, rng.standard_normal((count, points)), rng.standard_normal((count, points)))
