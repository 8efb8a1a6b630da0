"""A user's own controller, whose mistakes become clear errors before an actor plays them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdi.controller.base import Belief, Controller
from gdi.errors import UserError
from gdi.index_space import IndexSpace
from gdi.types import EpisodeEnd, Index, State

# What every controller has, as its author would write it.
MEMBERS = {
    "slots": "slots",
    "propose": "propose(envs)",
    "propose_best": "propose_best(env, rng)",
    "observe": "observe(episodes, transitions)",
    "belief": "belief()",
    "state_dict": "state_dict()",
    "load_state_dict": "load_state_dict(state)",
}
DECIMALS = 6  # a conversion from a coordinate may pass a limit by a rounding error


class CheckedController:
    """A controller that passes everything on to a user's own, and checks each proposal."""

    def __init__(self, inner: Controller, space: IndexSpace, made_by: str) -> None:
        """``made_by`` is the name of the config whose ``build`` returned the inner controller."""
        self._inner, self._space, self._name = inner, space, type(inner).__name__
        for member, signature in MEMBERS.items():
            if not hasattr(inner, member):
                raise UserError(
                    f"controller {self._name} has no {signature}: add it to the controller that {made_by}.build "
                    "returns."
                )

    @property
    def slots(self) -> int:
        return self._inner.slots

    def propose(self, envs: list[int]) -> list[Index]:
        proposed: Any = self._inner.propose(envs)
        if not hasattr(proposed, "__len__") or len(proposed) != len(envs):
            given = f"{len(proposed)} λ" if hasattr(proposed, "__len__") else type(proposed).__name__
            raise UserError(
                f"controller {self._name}: propose returned {given} for {len(envs)} environments: return a list with "
                "one λ for each."
            )
        return [self._checked("propose", index) for index in proposed]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        return self._checked("propose_best", self._inner.propose_best(env, rng))

    def _checked(self, method: str, index: Any) -> Index:
        try:
            values = tuple(map(float, index))
        except (TypeError, ValueError):
            names = ", ".join(self._space.names)
            raise UserError(
                f"controller {self._name}: {method} gave {index!r:.60} as a λ: give a tuple of numbers ({names})."
            ) from None
        try:
            self._space.check(tuple(round(value, DECIMALS) for value in values))
        except UserError as error:
            raise UserError(f"controller {self._name}: {method} gave a wrong λ: {error}") from None
        return values

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        self._inner.observe(episodes, transitions)

    def belief(self) -> list[Belief]:
        return self._inner.belief()

    def state_dict(self) -> State:
        return self._inner.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._inner.load_state_dict(state)
