"""Separate seeds for the components of a run, all derived from the seed of the run."""

from __future__ import annotations

import zlib

import numpy as np


def child_seed(seed: int, name: str, *more: int) -> int:
    """Derive the seed of a named component, and of the numbers in ``more``, from the seed of the run."""
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode()), *more]).generate_state(1)[0])
