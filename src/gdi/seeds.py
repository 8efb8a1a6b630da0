"""A seed of its own for each part of a run, all descending from the run's one seed."""

from __future__ import annotations

import zlib

import numpy as np

from gdi.config import Config


def child_seed(seed: int, name: str, *more: int) -> int:
    """A seed of its own for each named part (and moment), all descending from the run's one seed."""
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode()), *more]).generate_state(1)[0])


def collector_rng(config: Config) -> np.random.Generator:
    return np.random.default_rng(child_seed(config.seed, "collector"))
