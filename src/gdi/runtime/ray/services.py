"""The two services of the actors on Ray: the controller for λ, and the parameter server for θ.

Neither imports torch. A process without torch starts sooner and is smaller.
"""

from __future__ import annotations

from copy import deepcopy

from gdi.acting.newest import LatestParameters
from gdi.config import Config
from gdi.controller import make_controller
from gdi.iteration import Sampled, reweight
from gdi.runtime.metrics import controller_metrics
from gdi.runtime.ray.processes import Ref, lower_priority
from gdi.types import Index, State


class ControllerWorker:
    """The controller, which proposes exploration settings (P_Λ) and learns from returns (E)."""

    def __init__(self, config: Config, lockstep: bool) -> None:
        self._controller = make_controller(config)
        self._lockstep = lockstep
        self._note_state()
        lower_priority()

    def _note_state(self) -> None:
        """Note the state before the next window. Without lockstep, many windows are played at the same time."""
        self._before = deepcopy(self._controller.state_dict()) if self._lockstep else None

    def take_back(self) -> None:
        """Return to the state before the newest window, in lockstep."""
        if self._before is not None:
            self._controller.load_state_dict(self._before)

    def slots(self) -> int:
        return self._controller.slots

    def propose(self, envs: list[int]) -> list[Index]:
        return self._controller.propose(envs)

    def reweight(self, sampled: Sampled) -> None:
        reweight(self._controller, sampled)
        self._note_state()

    def metrics(self) -> dict[str, float | list[float]]:
        return controller_metrics(self._controller)

    def state_dict(self) -> State:
        return self._controller.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._controller.load_state_dict(state)
        self._note_state()


class ParameterWorker:
    """The parameter server, which holds a reference to θ instead of θ."""

    def __init__(self) -> None:
        self._newest: LatestParameters[list[Ref]] = LatestParameters([])
        lower_priority()

    def push(self, params: list[Ref], version: int) -> None:
        self._newest.push(params, version)

    def pull(self, have_version: int | None) -> tuple[list[Ref], int] | None:
        return self._newest.pull(have_version)
