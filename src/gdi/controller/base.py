"""P_Λ together with E: what the loop asks of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gdi.types import Array, EpisodeEnd, Index, State


@dataclass(frozen=True)
class Belief:
    """One axis as its controller sees it now: estimates per block, for logs and pictures."""

    axis: str
    value: Array  # [blocks] standardized estimate of the return
    count: Array  # [blocks] episodes that informed it
    probability: Array  # [blocks] chance that the next proposal lies in the block


class Controller(Protocol):
    """P_Λ together with E. Only ``observe`` learns, so proposals may be drawn ahead or thrown away."""

    @property
    def slots(self) -> int:
        """1: all environments are alike. N: environment e is slot e mod N, and must be named truly."""
        ...

    def propose(self, envs: list[int]) -> list[Index]:
        """λ ~ P_Λ for the next training episode of each of these environments."""
        ...

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        """λ for evaluation: the choice without any exploration bonus.

        The generator is not the controller's own, so that evaluating more or less often does not change training.
        """
        ...

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        """E, once an iteration: learn from the episodes that ended while so many transitions were sampled."""
        ...

    def belief(self) -> list[Belief]:
        """The current estimates, one entry per searched axis."""
        ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...
