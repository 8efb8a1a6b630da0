"""Construction of the controller that a config names, either one of ours or a user's own."""

from __future__ import annotations

import numpy as np

from gdi.config import (
    Config,
    FixedConfig,
    MultiplicativeWeightsConfig,
    ScheduleConfig,
    TileBanditConfig,
    UniformConfig,
    controller_traits,
)
from gdi.controller.base import Controller
from gdi.controller.checked import CheckedController
from gdi.controller.ensemble import BanditEnsemble
from gdi.controller.multiplicative_weights import MultiplicativeWeights
from gdi.controller.per_environment import PerEnvironment
from gdi.controller.schedule import ScheduledController
from gdi.controller.static import FixedController, UniformController
from gdi.index_space import IndexSpace, make_index_space
from gdi.seeds import child_seed


def make_controller(config: Config, num_envs: int | None = None) -> Controller:
    """Make one controller for all environments, or one for each of ``num_envs`` (``per_environment``)."""
    space = make_index_space(config.index_space)
    num_envs = config.env.num_envs if num_envs is None else num_envs
    number = num_envs if controller_traits(config.controller).per_environment else 1
    rngs = [np.random.default_rng(child_seed(config.seed, "controller", slot)) for slot in range(number)]
    controllers = [_make_one(config, space, rng) for rng in rngs]
    return controllers[0] if number == 1 else PerEnvironment(controllers)


def _make_one(config: Config, space: IndexSpace, rng: np.random.Generator) -> Controller:
    kind = config.controller
    build = getattr(kind, "build", None)
    if build is not None:  # first, because a user's class may be a subclass of one of ours
        return CheckedController(build(space, rng), space, type(kind).__name__)
    if isinstance(kind, ScheduleConfig):
        return ScheduledController(space, kind)
    if isinstance(kind, FixedConfig) or space.degrees_of_freedom == 0:
        return FixedController(space)
    if isinstance(kind, UniformConfig):
        return UniformController(space, rng)
    if isinstance(kind, MultiplicativeWeightsConfig):
        return MultiplicativeWeights(space, kind.step_size, rng)
    assert isinstance(kind, TileBanditConfig)
    return BanditEnsemble(space, kind, rng)
