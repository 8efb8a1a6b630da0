"""Acting on Ray: the actors, and how they get λ and θ from the parts that have them.

What can fail while a part is made is made by a method, not by ``__init__``: its error then reaches the driver whole.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

import ray
from torch import Tensor

from gdi.acting.actor import Actor
from gdi.clock import Clock
from gdi.config import Config
from gdi.iteration import Sampled, sample
from gdi.runtime.parts import make_actor, prepare_process
from gdi.runtime.ray.processes import Handle, give_way
from gdi.runtime.ray.tensors import device_here, to_tensors
from gdi.types import Index, State, Window


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

    def __init__(self, ask: Callable[[list[int]], list[Index]], *, slots: int, ahead: bool) -> None:
        """``ask`` draws a λ for each of these environments; not ``ahead``: exactly when one is needed.

        Only where the controller has one slot are environments alike, so that a λ may be drawn ahead for any of them.
        """
        self._ask, self._slots, self._ahead = ask, slots, ahead and slots == 1
        self._stock: dict[int, deque[Index]] = {}  # by the environment it was drawn for
        self._expected: Counter[int] = Counter()
        self._used: Counter[int] = Counter()

    def begin_window(self) -> None:
        self._stock.clear()
        self._expected, self._used = self._used, Counter()

    def propose(self, envs: list[int]) -> list[Index]:
        owners = [0 if self._slots == 1 else env for env in envs]  # one slot for all: any will do
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
        slots: int,
    ) -> None:
        """``slots``: those of the controller."""
        self._indices = ProposedIndices(
            lambda envs: ray.get(controller.propose.remote(envs)),
            slots=slots,
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
        give_way()  # not before: an actor that starts late leaves the learner without data

    def sample(self, max_transitions: int) -> tuple[Window, Sampled]:
        self._parameters.begin_window()
        self._indices.begin_window()
        window, sampled = sample(self._actor, self._propose, max_transitions)
        episodes = [replace(episode, env=self._first_env + episode.env) for episode in sampled.episodes]
        return window, Sampled(sampled.transitions, episodes)

    def _propose(self, envs: list[int]) -> list[Index]:
        return self._indices.propose([self._first_env + env for env in envs])

    def state_dict(self) -> State:
        return self._actor.state_dict()
