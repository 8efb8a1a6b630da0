"""A controller that a clock moves, such as the annealed ε of DQN.

It ignores returns, so E is the identity.
"""

from __future__ import annotations

import numpy as np

from gdi.config import ScheduleConfig
from gdi.controller.base import Belief
from gdi.index_space import IndexSpace
from gdi.types import EpisodeEnd, Index, State


class ScheduledController:
    """A point mass P_Λ: one component of λ is linear in the transitions sampled, and the others stay."""

    slots = 1

    def __init__(self, space: IndexSpace, config: ScheduleConfig) -> None:
        self._base = space.base
        self._place = space.names.index(config.component)
        self._config = config
        self._transitions = 0

    @property
    def value(self) -> float:
        """Current value of the component."""
        return self._config.value_at(self._transitions)

    def _index(self, value: float) -> Index:
        return (*self._base[: self._place], value, *self._base[self._place + 1 :])

    def propose(self, envs: list[int]) -> list[Index]:
        return [self._index(self.value) for _ in envs]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        return self._index(self._config.evaluation)

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        """Move the clock; returns do not matter."""
        self._transitions += transitions

    def belief(self) -> list[Belief]:
        return []

    def state_dict(self) -> State:
        return {"transitions": self._transitions}

    def load_state_dict(self, state: State) -> None:
        self._transitions = int(state["transitions"])
