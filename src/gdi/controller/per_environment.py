"""One controller per environment, as alg:i3 is printed. Each learns only from its own episodes."""

from __future__ import annotations

import numpy as np

from gdi.controller.base import Belief, Controller
from gdi.types import EpisodeEnd, Index, State


class PerEnvironment:
    """A set of N controllers, of which controller e mod N serves environment e."""

    def __init__(self, controllers: list[Controller]) -> None:
        self.controllers = controllers

    @property
    def slots(self) -> int:
        return len(self.controllers)

    def _controller_of(self, env: int) -> Controller:
        return self.controllers[env % self.slots]

    def propose(self, envs: list[int]) -> list[Index]:
        return [self._controller_of(env).propose([env])[0] for env in envs]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        return self._controller_of(env).propose_best(env, rng)

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        for slot, controller in enumerate(self.controllers):
            controller.observe([episode for episode in episodes if episode.env % self.slots == slot], transitions)

    def belief(self) -> list[Belief]:
        """Average the beliefs of all controllers."""
        return [
            Belief(
                axis[0].axis,
                np.mean([belief.value for belief in axis], axis=0),
                np.mean([belief.count for belief in axis], axis=0),
                np.mean([belief.probability for belief in axis], axis=0),
            )
            for axis in zip(*(controller.belief() for controller in self.controllers), strict=True)
        ]

    def state_dict(self) -> State:
        return {str(slot): controller.state_dict() for slot, controller in enumerate(self.controllers)}

    def load_state_dict(self, state: State) -> None:
        for slot, controller in enumerate(self.controllers):
            if str(slot) in state:  # a run resumed on Ray may have more environments than its checkpoint
                controller.load_state_dict(state[str(slot)])
