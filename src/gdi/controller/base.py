"""The interface of a controller: a distribution over indices (P_Λ) and its update (E)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gdi.types import Array, EpisodeEnd, Index, State


@dataclass(frozen=True)
class Belief:
    """A controller's current belief about one axis: an estimate for each block, for logs and plots."""

    axis: str
    value: Array  # [blocks] standardized estimate of the return
    count: Array  # [blocks] episodes that informed it
    probability: Array  # [blocks] chance that the next proposal lies in the block


class Controller(Protocol):
    """A distribution over indices (P_Λ) and its update (E).

    Only ``observe`` learns, so the caller may draw proposals ahead of time or discard them.
    """

    @property
    def slots(self) -> int:
        """Number of groups of environments that the controller tells apart.

        1 means that all environments are alike. With N, environment e belongs to slot e mod N, so the caller must pass
        its true number.
        """
        ...

    def propose(self, envs: list[int]) -> list[Index]:
        """Draw λ ~ P_Λ for the next training episode of each of these environments."""
        ...

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        """Choose λ for evaluation, without any exploration bonus.

        The caller passes a separate generator, so that the number of evaluations does not change training.
        """
        ...

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        """Learn from the episodes of an iteration (E), in which ``transitions`` were sampled."""
        ...

    def belief(self) -> list[Belief]:
        """Return the current estimates, one entry per searched axis."""
        ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...
