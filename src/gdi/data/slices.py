"""Slices of stored streams: a few steps of one environment, gathered by flat indices.

Streams lie in arrays of rows, ``[rows, B, ...]``. A slice of T steps that begins at row s takes rows s to s + T, the
last one for the bootstrap.
"""

from __future__ import annotations

import numpy as np

from gdi.types import EXTRAS, LONG_FIELDS, Array


def ages(episode_start: Array, context: int) -> Array:
    """Return how many frames before each row belong to its episode, at most ``context``: [rows, B] -> [rows, B].

    Rows before the first one count: a stored stream carries ``context`` frames in front of it.
    """
    row = np.arange(len(episode_start))[:, None]
    last_start = np.maximum.accumulate(np.where(episode_start, row, -context), axis=0)
    found: Array = np.minimum(row - last_start, context)
    return found


def take_slices(
    arrays: dict[str, Array], age: Array, column: Array, start: Array, steps: int, context: int
) -> dict[str, Array]:
    """Gather slices of ``steps`` steps, time-major: fields with a row per observation get ``steps`` + 1 rows.

    ``arrays`` are rows of B columns; ``obs`` has ``context`` rows in front. ``column`` and ``start`` are [n].
    """
    width = age.shape[1]
    row = start + np.arange(steps + 1)[:, None]  # [T + 1, n]
    flat = row * width + column
    out = {}
    for name, array in arrays.items():
        if name == "obs":
            back = np.arange(context, 0, -1)[:, None]  # frames before the slice, oldest first
            before = start + context - np.minimum(back, age[start, column])
            rows = np.concatenate([before * width + column, flat + context * width])
        else:
            rows = flat if name in LONG_FIELDS or name.startswith(EXTRAS) else flat[:-1]
        whole = array.reshape(-1, *array.shape[2:])
        out[name] = whole.take(rows, axis=0)
    return out
