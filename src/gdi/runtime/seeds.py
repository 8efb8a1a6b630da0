"""A seed for each part, and the parts that are little more than theirs: controllers, and the collector's generator.

No torch here: on Ray these parts live in processes that need none.
"""

from __future__ import annotations

import zlib

import numpy as np

from gdi.config import Config
from gdi.controller import Controller, make_controller
from gdi.index_space import make_index_space


def child_seed(seed: int, name: str, *more: int) -> int:
    """A seed of its own for each named part (and moment), all descending from the run's one seed."""
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode()), *more]).generate_state(1)[0])


def make_controllers(config: Config) -> list[Controller]:
    """One controller for all environments, or one for each."""
    space = make_index_space(config.index_space)
    number = config.env.num_envs if config.controller.per_environment else 1
    return [
        make_controller(config.controller, space, np.random.default_rng(child_seed(config.seed, "controller", i)))
        for i in range(number)
    ]


def collector_rng(config: Config) -> np.random.Generator:
    return np.random.default_rng(child_seed(config.seed, "collector"))
