"""The two parts that actors on Ray ask: the controller for λ, and the parameter server for θ.

Neither needs torch, and a process without it starts sooner and is smaller.
"""

from __future__ import annotations

from gdi.acting.newest import Newest
from gdi.config import Config
from gdi.controller import make_controllers
from gdi.iteration import proposals, reweight
from gdi.runtime.metrics import controller_metrics
from gdi.runtime.ray.processes import Ref, give_way
from gdi.types import EpisodeEnd, Index, State


class ControllerWorker:
    """P_Λ and E."""

    def __init__(self, config: Config) -> None:
        self._controllers = make_controllers(config)
        give_way()

    def propose(self, envs: list[int]) -> list[Index]:
        return proposals(self._controllers, envs)

    def reweight(self, episodes: list[EpisodeEnd]) -> None:
        reweight(self._controllers, episodes)

    def metrics(self) -> dict[str, float | list[float]]:
        return controller_metrics(self._controllers)

    def state_dict(self) -> State:
        return {str(i): controller.state_dict() for i, controller in enumerate(self._controllers)}

    def load_state_dict(self, state: State) -> None:
        for i, controller in enumerate(self._controllers):
            if str(i) in state:  # there may be more environments than before, and a controller for each
                controller.load_state_dict(state[str(i)])


class ParameterWorker:
    """The parameter server; it holds a reference to θ, not θ."""

    def __init__(self) -> None:
        self._newest: Newest[list[Ref]] = Newest([])
        give_way()

    def push(self, params: list[Ref], version: int) -> None:
        self._newest.push(params, version)

    def pull(self, have_version: int | None) -> tuple[list[Ref], int] | None:
        return self._newest.pull(have_version)
