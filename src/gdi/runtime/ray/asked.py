"""The two parts that actors on Ray ask: the controller for λ, and the parameter server for θ.

Neither needs torch, and a process without it starts sooner and is smaller.
"""

from __future__ import annotations

from gdi.acting.newest import Newest
from gdi.config import Config
from gdi.controller import make_controller
from gdi.iteration import Sampled, reweight
from gdi.runtime.metrics import controller_metrics
from gdi.runtime.ray.processes import Ref, give_way
from gdi.types import Index, State


class ControllerWorker:
    """P_Λ and E."""

    def __init__(self, config: Config) -> None:
        self._controller = make_controller(config)
        give_way()

    def slots(self) -> int:
        return self._controller.slots

    def propose(self, envs: list[int]) -> list[Index]:
        return self._controller.propose(envs)

    def reweight(self, sampled: Sampled) -> None:
        reweight(self._controller, sampled)

    def metrics(self) -> dict[str, float | list[float]]:
        return controller_metrics(self._controller)

    def state_dict(self) -> State:
        return self._controller.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._controller.load_state_dict(state)


class ParameterWorker:
    """The parameter server; it holds a reference to θ, not θ."""

    def __init__(self) -> None:
        self._newest: Newest[list[Ref]] = Newest([])
        give_way()

    def push(self, params: list[Ref], version: int) -> None:
        self._newest.push(params, version)

    def pull(self, have_version: int | None) -> tuple[list[Ref], int] | None:
        return self._newest.pull(have_version)
