"""A seed of its own for each part of a run, all descending from the run's one seed."""

from __future__ import annotations

import zlib

import numpy as np


def child_seed(seed: int, name: str, *more: int) -> int:
    """A seed of its own for each named part (and moment), all descending from the run's one seed."""
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode()), *more]).generate_state(1)[0])
