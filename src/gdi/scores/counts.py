"""Counts of scores: a bootstrap replicate is the same scores, each with the number of times that it was drawn.

Counts have the shape of the scores, ``[..., runs, games]``, with leading axes for the replicates. Without counts every
score counts once. A missing score never counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gdi.scores.reference import Array

Counts = NDArray[Any]  # whole numbers of any size

# A block of replicates has about so many counts. Blocks that fit in the processor's cache are several times faster.
_BLOCK = 2**16


def by_game(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return ``[..., runs, games]`` as ``[..., games, runs]``, with the runs of a game next to each other."""
    return np.ascontiguousarray(np.swapaxes(matrix, -1, -2))


def pooled(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return ``[..., games, runs]`` with games and runs in one axis."""
    return matrix.reshape(*matrix.shape[:-2], -1)


def over_replicates(function: Callable[..., Array], *samples: tuple[Array, Counts | None]) -> Array:
    """Return ``function(*counts)`` for pairs of scores and counts, computed in blocks of replicates.

    The function gets the counts by game, ``[..., games, runs]``, with 0 for each missing score.
    """
    every = [_Sample(*sample) for sample in samples]
    replicates = max(sample.replicates for sample in every)
    if not replicates:
        return function(*(sample.counts_by_game(slice(None)) for sample in every))
    rows = max(1, _BLOCK // max(sample.cells for sample in every))
    blocks = [slice(start, start + rows) for start in range(0, replicates, rows)]
    return np.concatenate([function(*(sample.counts_by_game(block) for sample in every)) for block in blocks])


@dataclass(frozen=True)
class _Sample:
    """Scores with their counts."""

    scores: Array
    counts: Counts | None

    @property
    def replicates(self) -> int:
        """Return the length of the axis that only the counts have, or 0 if they have none."""
        return len(self.counts) if self.counts is not None and self.counts.ndim > self.scores.ndim else 0

    @property
    def cells(self) -> int:
        """Return the number of counts in one replicate."""
        return math.prod(np.broadcast_shapes(self.scores.shape, () if self.counts is None else self.counts.shape[1:]))

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        return by_game(np.isfinite(self.scores))

    @cached_property
    def complete(self) -> bool:
        return bool(self.present.all())

    def counts_by_game(self, block: slice) -> Counts:
        """Return the counts of some replicates, ``[..., games, runs]``."""
        if self.counts is None:
            return self.present.astype(np.int64)
        counts = by_game(self.counts[block] if self.replicates else self.counts)
        return counts if self.complete else np.where(self.present, counts, 0)


def running_counts(counts: Counts, order: NDArray[np.intp]) -> Counts:
    """Return how many of the first k scores in `order` were drawn, for k = 0 to all: ``[..., scores + 1]``."""
    ordered = take_last(counts, order)
    upto = np.zeros((*ordered.shape[:-1], ordered.shape[-1] + 1), np.result_type(ordered, np.int32))
    np.cumsum(ordered, axis=-1, out=upto[..., 1:])
    return upto


def take_last(values: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Return the values at some places of the last axis; the leading axes of both broadcast."""
    lead, length = places.shape[:-1], values.shape[-1]
    if lead == values.shape[values.ndim - places.ndim : -1]:  # one flat index is the fastest
        starts = length * np.arange(math.prod(lead)).reshape(*lead, 1)
        flat = values.reshape(*values.shape[: values.ndim - places.ndim], -1)
        return np.asarray(flat.take(starts + places, axis=-1))
    missing = values.ndim - places.ndim
    return np.asarray(np.take_along_axis(values[(None,) * -missing], places[(None,) * missing], axis=-1))


def ascending(scores: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return scores in increasing order, with missing ones last, and the order."""
    order = np.argsort(scores, axis=-1)
    return np.take_along_axis(scores, order, axis=-1), order


def number_below(x: Array, y: Array, *, ties: bool) -> NDArray[np.intp]:
    """Return how many runs of Y are below each run of X in the same game; with `ties`, also those equal to it."""
    lead = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    x, y = np.broadcast_to(x, (*lead, x.shape[-1])), np.broadcast_to(y, (*lead, y.shape[-1]))
    # A stable sort keeps equal scores in this order.
    order = np.argsort(np.concatenate([y, x] if ties else [x, y], axis=-1), axis=-1, kind="stable")
    is_y = order < y.shape[-1] if ties else order >= x.shape[-1]
    number = np.empty_like(order)
    np.put_along_axis(number, order, np.cumsum(is_y, axis=-1), axis=-1)
    return number[..., y.shape[-1] :] if ties else number[..., : x.shape[-1]]
