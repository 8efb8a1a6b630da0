"""The parameter server: the newest θ that the learner pushed, with its version."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from gdi.types import State


class Parameters(Protocol):
    """Where an actor gets θ from: a parameter server, here or in another process."""

    def pull(self, have_version: int | None) -> tuple[dict[str, Tensor], int] | None: ...


P = TypeVar("P")


class Newest(Generic[P]):
    """Holds one θ, or where it is kept. A version is the number of updates behind it, so lag is their difference."""

    def __init__(self, params: P, version: int = 0) -> None:
        self._params = params
        self.version = version

    def push(self, params: P, version: int) -> None:
        self._params, self.version = params, version

    def pull(self, have_version: int | None) -> tuple[P, int] | None:
        """θ and its version, or None when the caller has that one already."""
        return None if have_version == self.version else (self._params, self.version)


class ParameterServer(Newest[dict[str, Tensor]]):
    """The newest θ of a run in one process."""

    def state_dict(self) -> State:
        return {"params": dict(self._params), "version": self.version}

    def load_state_dict(self, state: State) -> None:
        self._params = {name: torch.as_tensor(value) for name, value in state["params"].items()}
        self.version = int(state["version"])
