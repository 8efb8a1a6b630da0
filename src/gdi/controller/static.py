"""Controllers that never learn (the ablations "Fix Selection" and "Random Selection")."""

from __future__ import annotations

import numpy as np

from gdi.controller.base import Belief
from gdi.index_space import IndexSpace
from gdi.types import EpisodeEnd, Index, State


class FixedController:
    """A controller that always proposes the base index of the space (P_Λ is a point mass)."""

    slots = 1

    def __init__(self, space: IndexSpace) -> None:
        self._index = space.base

    def propose(self, envs: list[int]) -> list[Index]:
        return [self._index for _ in envs]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        return self._index

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        """Ignore the episodes, because E is the identity."""

    def belief(self) -> list[Belief]:
        return []

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """Ignore the state, because this controller learns nothing."""


class UniformController:
    """A controller whose P_Λ is uniform in its coordinates, also for evaluation, because it has no better guess."""

    slots = 1

    def __init__(self, space: IndexSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng

    def propose(self, envs: list[int]) -> list[Index]:
        return [self.propose_best(env, self._rng) for env in envs]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        axes = self._space.axes
        low, high = np.array([axis.low for axis in axes]), np.array([axis.high for axis in axes])
        return self._space.to_index(rng.uniform(low, high))

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        """Ignore the episodes, because E is the identity."""

    def belief(self) -> list[Belief]:
        return []

    def state_dict(self) -> State:
        return {"rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
