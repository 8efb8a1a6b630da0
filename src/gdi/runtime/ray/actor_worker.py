"""Acting on Ray: the actors, and how they get λ and θ from other processes.

A method creates everything that can fail. An error in ``__init__`` would not reach the driver in full.
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
from gdi.errors import EnvironmentFaultError, Fault
from gdi.iteration import Sampled, sample
from gdi.runtime.factories import configure_process, make_actor
from gdi.runtime.ray.processes import Handle, lower_priority
from gdi.runtime.ray.tensors import assigned_device, to_tensors
from gdi.types import Index, State, Window


class RemoteParameters:
    """The parameters (θ) for an actor in another process; it queries the server at most once per window."""

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


class IndexPrefetcher:
    """Prefetched exploration settings (λ ~ P_Λ), because every message costs both processes time.

    The first request in a window asks for as many λ as the previous window used. Those left at the end of a window are
    discarded, so no λ is older than the window in which its episode starts.
    """

    def __init__(self, ask: Callable[[list[int]], list[Index]], *, slots: int, ahead: bool) -> None:
        """``ask`` draws one λ for each of its environments; ``ahead`` allows prefetching.

        Prefetching needs a controller with one slot. Only then are environments alike, and a λ drawn in advance fits
        any of them.
        """
        self._ask, self._slots, self._ahead = ask, slots, ahead and slots == 1
        self._stock: dict[int, deque[Index]] = {}  # by the environment that it was drawn for
        self._expected: Counter[int] = Counter()
        self._used: Counter[int] = Counter()

    def begin_window(self) -> None:
        self._stock.clear()
        self._expected, self._used = self._used, Counter()

    def propose(self, envs: list[int]) -> list[Index]:
        owners = [0 if self._slots == 1 else env for env in envs]  # with one slot, any environment will do
        self._used.update(owners)
        lacking = Counter(owners) - Counter({owner: len(stock) for owner, stock in self._stock.items()})
        if lacking:
            later = self._expected - self._used if self._ahead else Counter()
            asked = list((lacking + later).elements())
            for owner, index in zip(asked, self._ask(asked), strict=True):
                self._stock.setdefault(owner, deque()).append(index)
        return [self._stock[owner].popleft() for owner in owners]


class ActorWorker:
    """An actor with its own environments."""

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
        """``slots`` is the number of the controller's slots."""
        self._indices = IndexPrefetcher(
            lambda envs: ray.get(controller.propose.remote(envs)),
            slots=slots,
            ahead=not lockstep,
        )
        self._parameters = RemoteParameters(server)
        self._make: Callable[[], Actor] = lambda: make_actor(
            config, self._parameters, assigned_device(config), configure_process(threads), Clock(), *which
        )
        self._first_env = number * config.env.num_envs

    def start(self, state: State | None) -> None:
        """Create the actor and restore ``state`` if there is one; call this before any other method."""
        self._actor = self._make()
        if state is not None:
            self._actor.load_state_dict(state)
        lower_priority()  # not earlier, because an actor that starts late leaves the learner without data

    def sample(self, max_transitions: int) -> tuple[Window, Sampled]:
        self._parameters.begin_window()
        self._indices.begin_window()
        mark = self._actor.mark()
        try:
            window, sampled = sample(self._actor, self._propose, max_transitions)
        except EnvironmentFaultError as error:
            if mark is not None:
                self._actor.rewind(mark)
            raise EnvironmentFaultError(self._numbered(error.fault)) from None
        episodes = [replace(episode, env=self._first_env + episode.env) for episode in sampled.episodes]
        faults = tuple(map(self._numbered, sampled.faults))
        return window, replace(sampled, episodes=episodes, faults=faults)

    def _numbered(self, fault: Fault) -> Fault:
        """Return the fault with the copy's number among those of all actors."""
        return fault if fault.copy is None else fault._replace(copy=self._first_env + fault.copy)

    def _propose(self, envs: list[int]) -> list[Index]:
        return self._indices.propose([self._first_env + env for env in envs])

    def state_dict(self) -> State:
        return self._actor.state_dict()
