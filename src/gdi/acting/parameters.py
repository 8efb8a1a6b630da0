"""The parameter server, which holds the parameters (θ) that the learner pushed last."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gdi.acting.newest import LatestParameters
from gdi.types import State


class Parameters(Protocol):
    """The source of an actor's parameters (θ): a parameter server in this process or in another."""

    def pull(self, have_version: int | None) -> tuple[dict[str, Tensor], int] | None: ...


class ParameterServer(LatestParameters[dict[str, Tensor]]):
    """The parameter server of a single-process run."""

    def state_dict(self) -> State:
        return {"params": dict(self._params), "version": self.version}

    def load_state_dict(self, state: State) -> None:
        self._params = {name: torch.as_tensor(value) for name, value in state["params"].items()}
        self.version = int(state["version"])
