"""Acting on Ray: the actors, and the two parts that they ask, the controller for λ and the parameter server for θ.

What can fail while a part is made is made by a method, not by ``__init__``: its error then reaches the driver whole.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import ray
from torch import Tensor

from gdi.acting import Actor
from gdi.acting.parameters import Newest
from gdi.clock import Clock
from gdi.config import Config
from gdi.iteration import proposals, reweight, sample
from gdi.runtime.metrics import controller_metrics
from gdi.runtime.parts import make_actor, make_controllers, prepare_process
from gdi.runtime.ray.processes import Handle, Ref, device_here, to_tensors
from gdi.types import EpisodeEnd, Index, Sequence, State


@dataclass(frozen=True)
class Report:
    """What is known of a window without opening it."""

    transitions: int
    episodes: list[EpisodeEnd]


class PulledParameters:
    """θ as an actor in another process sees it. It asks the parameter server at most once a window."""

    def __init__(self, server: Handle) -> None:
        self._server = server
        self._asked = False

    def begin_window(self) -> None:
        self._asked = False

    def pull(self, have_version: int | None) -> tuple[dict[str, Tensor], int] | None:
        if self._asked:
            return None
        self._asked = True
        pulled = ray.get(self._server.pull.remote(have_version))
        if pulled is None:
            return None
        [reference], version = pulled
        return to_tensors(ray.get(reference)), version


class ProposedIndices:
    """λ ~ P_Λ as an actor in another process gets it: drawn ahead, because every message costs both sides time.

    At the first need in a window it asks for as many as the window before took. What is left when a window ends is
    thrown away, so that no λ is older than the window in which its episode begins.
    """

    def __init__(self, ask: Callable[[list[int]], list[Index]], *, per_environment: bool, ahead: bool) -> None:
        """``ask`` draws a λ for each of these environments; not ``ahead``: exactly when one is needed."""
        self._ask, self._per_environment, self._ahead = ask, per_environment, ahead
        self._stock: dict[int, deque[Index]] = {}  # by the environment whose controller drew it
        self._expected: Counter[int] = Counter()
        self._used: Counter[int] = Counter()

    def begin_window(self) -> None:
        self._stock.clear()
        self._expected, self._used = self._used, Counter()

    def propose(self, envs: list[int]) -> list[Index]:
        owners = [env if self._per_environment else 0 for env in envs]  # one controller for all: any will do
        self._used.update(owners)
        lacking = Counter(owners) - Counter({owner: len(stock) for owner, stock in self._stock.items()})
        if lacking:
            later = self._expected - self._used if self._ahead else Counter()
            asked = list((lacking + later).elements())
            for owner, index in zip(asked, self._ask(asked), strict=True):
                self._stock.setdefault(owner, deque()).append(index)
        return [self._stock[owner].popleft() for owner in owners]


class ActorWorker:
    """An actor with environments of its own."""

    def __init__(
        self,
        config: Config,
        number: int,
        which: tuple[int, ...],
        threads: int,
        controller: Handle,
        server: Handle,
        lockstep: bool,
    ) -> None:
        self._indices = ProposedIndices(
            lambda envs: ray.get(controller.propose.remote(envs)),
            per_environment=config.controller.per_environment,
            ahead=not lockstep,
        )
        self._parameters = PulledParameters(server)
        self._make: Callable[[], Actor] = lambda: make_actor(
            config, self._parameters, device_here(config), prepare_process(threads), Clock(), *which
        )
        self._first_env = number * config.env.num_envs

    def start(self, state: State | None) -> None:
        """Comes first: make the actor, and let it continue from ``state`` if there is one."""
        self._actor = self._make()
        if state is not None:
            self._actor.load_state_dict(state)

    def sample(self, max_transitions: int) -> tuple[Sequence, Report]:
        self._parameters.begin_window()
        self._indices.begin_window()
        sampled = sample(self._actor, self._propose, max_transitions)
        episodes = [replace(episode, env=self._first_env + episode.env) for episode in sampled.episodes]
        return sampled.window, Report(sampled.transitions, episodes)

    def _propose(self, envs: list[int]) -> list[Index]:
        return self._indices.propose([self._first_env + env for env in envs])

    def state_dict(self) -> State:
        return self._actor.state_dict()


class ControllerWorker:
    """P_Λ and E."""

    def __init__(self, config: Config) -> None:
        self._controllers = make_controllers(config)

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

    def push(self, params: list[Ref], version: int) -> None:
        self._newest.push(params, version)

    def pull(self, have_version: int | None) -> tuple[list[Ref], int] | None:
        return self._newest.pull(have_version)
