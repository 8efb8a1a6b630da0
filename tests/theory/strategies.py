"""Hypothesis strategies for finite measures and functions, degenerate ones included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gdi.theory.measures import Array

# The same examples every time, and no deadline: a busy machine must not turn a slow moment into a failure.
SETTINGS = settings(deadline=None, derandomize=True, max_examples=100)


def examples(*strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``given`` with SETTINGS, for these tests alone."""
    return lambda test: SETTINGS(given(*strategies)(test))


moderate = st.floats(-50, 50, allow_subnormal=False)
wild = st.floats(-1e300, 1e300)
few_levels = st.sampled_from([-1.0, 0.0, 0.0, 1.0])


@st.composite
def masses(draw: st.DrawFn, points: int) -> Array:
    """A probability vector; entries may be zero, tiny or all but one zero."""
    weight = draw(st.lists(st.sampled_from([0.0, 0.0, 1e-300, 1e-12, 0.3, 1.0, 7.0]), min_size=points, max_size=points))
    weight[draw(st.integers(0, points - 1))] = 1.0
    return np.array(weight) / sum(weight)


@st.composite
def problems(
    draw: st.DrawFn, values: st.SearchStrategy[float] = moderate, largest: int = 7
) -> tuple[Array, Array, Array]:
    """(mass, f, g) with f and g co-monotone: two sorted rows, shuffled alike; half the draws have many ties."""
    points = draw(st.integers(1, largest))
    mass = draw(masses(points))
    order = np.array(draw(st.permutations(range(points))))
    rows = []
    for _ in range(2):
        levels = draw(st.lists(draw(st.sampled_from([values, few_levels])), min_size=points, max_size=points))
        rows.append(np.sort(np.array(levels))[order])
    return mass, rows[0], rows[1]
