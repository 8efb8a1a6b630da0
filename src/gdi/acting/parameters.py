"""The parameter server: the newest θ that the learner pushed, with its version."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gdi.acting.newest import Newest
from gdi.types import State


class Parameters(Protocol):
    """Where an actor gets θ from: a parameter server, here or in another process."""

    def pull(self, have_version: int | None) -> tuple[dict[str, Tensor], int] | None: ...


class ParameterServer(Newest[dict[str, Tensor]]):
    """The newest θ of a run in one process."""

    def state_dict(self) -> State:
        return {"params": dict(self._params), "version": self.version}

    def load_state_dict(self, state: State) -> None:
        self._params = {name: torch.as_tensor(value) for name, value in state["params"].items()}
        self.version = int(state["version"])
