"""What a controller is, and which one a config asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gdi.config import Config, ControllerConfig
from gdi.index_space import IndexSpace, make_index_space
from gdi.seeds import child_seed
from gdi.types import Array, Index, State


@dataclass(frozen=True)
class Favourite:
    """One axis as its controller sees it now: estimates per block, for logs and pictures."""

    axis: str
    value: Array  # [blocks] standardised estimate of the return
    count: Array  # [blocks] episodes that informed it
    probability: Array  # [blocks] chance that the next proposal lies in the block


class Controller(Protocol):
    """P_Λ together with E."""

    def propose(self) -> Index:
        """λ ~ P_Λ, for one training episode."""
        ...

    def propose_best(self, rng: np.random.Generator) -> Index:
        """λ for evaluation: the choice without any exploration bonus.

        The generator is not the controller's own, so that evaluating more or less often does not change training.
        """
        ...

    def observe(self, index: Index, episode_return: float) -> None:
        """E: learn from one finished episode."""
        ...

    def favourites(self) -> list[Favourite]:
        """The current estimates, one entry per searched axis."""
        ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


def make_controller(config: ControllerConfig, space: IndexSpace, rng: np.random.Generator) -> Controller:
    from gdi.controller.ensemble import BanditEnsemble
    from gdi.controller.identity import FixedController, UniformController
    from gdi.controller.multiplicative_weights import MultiplicativeWeights

    if config.kind == "fixed" or space.degrees_of_freedom == 0:
        return FixedController(space)
    if config.kind == "uniform":
        return UniformController(space, rng)
    if config.kind == "multiplicative-weights":
        return MultiplicativeWeights(space, config.step_size, rng)
    return BanditEnsemble(space, config, rng)


def make_controllers(config: Config) -> list[Controller]:
    """One controller for all environments, or one for each."""
    space = make_index_space(config.index_space)
    number = config.env.num_envs if config.controller.per_environment else 1
    return [
        make_controller(config.controller, space, np.random.default_rng(child_seed(config.seed, "controller", i)))
        for i in range(number)
    ]
