"""The parts as Ray actors: each makes its part where it lives, and runs its step of Algorithm 1 there.

What can fail while a part is made is made by a method, not by ``__init__``: its error then reaches the driver whole.

Windows are written to Ray's object store once, by the actor that played them, and travel as references: the collector
keeps them, the learner reads their columns in place. θ is written once per version by the learner.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ray
import torch
from torch import Tensor

from gdi.acting import Actor, Collector
from gdi.acting.collector import Uses
from gdi.acting.parameters import Newest
from gdi.clock import Clock
from gdi.config import Config
from gdi.envs import EnvSpec
from gdi.evaluation import Evaluation, Evaluator
from gdi.iteration import controller_of, improve, proposals, reweight, sample, until_diverged
from gdi.learner import Learner
from gdi.learner.group import LearnerGroup
from gdi.runtime.metrics import collector_metrics, controller_metrics
from gdi.runtime.parts import (
    checked_plan,
    collector_rng,
    env_spec,
    initial_network,
    make_actor,
    make_controllers,
    make_evaluator,
    make_learner,
    prepare_process,
    resolve_device,
)
from gdi.types import Array, EpisodeEnd, Index, Metrics, Sequence, State, gather_columns, sequence_of

Arrays = dict[str, Array]
Ref = Any  # ray.ObjectRef; as an argument it stands in a list, or Ray would send what it refers to
Handle = Any  # a Ray actor


def to_arrays(params: dict[str, Tensor]) -> Arrays:
    """θ as NumPy arrays, which Ray writes to shared memory without pickling them."""
    return {name: value.numpy() for name, value in params.items()}


def to_tensors(arrays: Arrays) -> dict[str, Tensor]:
    return {name: torch.tensor(value) for name, value in arrays.items()}


def device_here(config: Config) -> torch.device:
    """The GPU that Ray gave this process, if it gave one and the config does not say cpu.

    A process that was given none may still see them.
    """
    given = ray.get_runtime_context().get_accelerator_ids().get("GPU")
    return resolve_device("auto" if given and config.run.device != "cpu" else "cpu")


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


class ActorWorker:
    """An actor with environments of its own."""

    def __init__(
        self, config: Config, number: int, which: tuple[int, ...], threads: int, controller: Handle, server: Handle
    ) -> None:
        self._controller = controller
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
        sampled = sample(self._actor, self._propose, max_transitions)
        episodes = [replace(episode, env=self._first_env + episode.env) for episode in sampled.episodes]
        return sampled.window, Report(sampled.transitions, episodes)

    def _propose(self, envs: list[int]) -> list[Index]:
        proposed: list[Index] = ray.get(self._controller.propose.remote([self._first_env + env for env in envs]))
        return proposed

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


class StoredWindow:
    """A window in the object store: the reference that is handed on, and its arrays in place.

    Holding the arrays keeps a copy on this node, so that the window outlives the node that it came from.
    """

    def __init__(self, reference: Ref) -> None:
        self.reference = reference
        self._sequence: Sequence = ray.get(reference)

    @property
    def num_sequences(self) -> int:
        return self._sequence.num_sequences

    @property
    def num_bytes(self) -> int:
        return self._sequence.num_bytes

    def arrays(self) -> Arrays:
        return self._sequence.arrays()


@dataclass(frozen=True)
class Due:
    """Batches to train now, and every window that will be used again later."""

    batches: list[Uses[Ref]]
    kept: list[Ref]


class CollectorWorker:
    """Which columns of which windows are trained next."""

    def __init__(self, config: Config, span_windows: int) -> None:
        learner = replace(config.learner, replay_span_windows=span_windows)
        self._collector: Collector[StoredWindow] = Collector(
            learner, collector_rng(config), lambda arrays: StoredWindow(ray.put(sequence_of(arrays)))
        )
        self._arrived: list[StoredWindow] = []

    def accept(self, references: list[Ref]) -> None:
        """A window has arrived once this returns; it raises if the window was lost on its way."""
        self._arrived.append(StoredWindow(references[0]))

    def take(self, last: bool) -> Due:
        """Add what arrived, and hand out every batch that is due."""
        batches: list[Uses[Ref]] = []
        # A local run that acted and learned at the same time leaves batches that are due.
        batches += self._batches(partial=False)
        for window in self._arrived:
            self._collector.add(window)
            batches += self._batches(partial=False)
        self._arrived.clear()
        if last:
            self._collector.finish()
            batches += self._batches(partial=True)
        return Due(batches, [window.reference for window in self._collector.windows])

    def _batches(self, partial: bool) -> Iterator[Uses[Ref]]:
        while (uses := self._collector.next_uses(allow_partial=partial)) is not None:
            yield [(window.reference, columns) for window, columns in uses]

    def metrics(self) -> Metrics:
        return collector_metrics(self._collector)

    def state_dict(self) -> State:
        return self._collector.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._collector.load_state_dict(state)


class ParameterWorker:
    """The parameter server; it holds a reference to θ, not θ."""

    def __init__(self) -> None:
        self._newest: Newest[list[Ref]] = Newest([])

    def push(self, params: list[Ref], version: int) -> None:
        self._newest.push(params, version)

    def pull(self, have_version: int | None) -> tuple[list[Ref], int] | None:
        return self._newest.pull(have_version)


def part_of(uses: Uses[Any], rank: int, size: int) -> Uses[Any]:
    """The columns of a batch that one of ``size`` learners trains: parts as equal as can be, none lost."""
    owners = [(i, column) for i, (_, columns) in enumerate(uses) for column in columns]
    begin, end = rank * len(owners) // size, (rank + 1) * len(owners) // size
    return [
        (window, np.array([column for owner, column in owners[begin:end] if owner == i], np.int64))
        for i, (window, _) in enumerate(uses)
        if any(owner == i for owner, _ in owners[begin:end])
    ]


@dataclass(frozen=True)
class Counters:
    """How far a learner is, and the seconds that it spent since it was last asked."""

    updates: int
    skipped: int
    seconds: dict[str, float]


class LearnerWorker:
    """A learner, alone or one of a group."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config, self._threads = config, threads
        self._group: LearnerGroup | None = None
        self._clock = Clock()
        self._windows: dict[Ref, Sequence] = {}

    def where(self) -> tuple[str, str]:
        """-> the node, and an address there at which a group can meet."""
        with socket.socket() as free:
            free.bind(("", 0))
            address = f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"
        return str(ray.get_runtime_context().get_node_id()), address

    def start(self, address: str, rank: int, size: int) -> tuple[EnvSpec, str]:
        """Make the learner, and meet the others of its group; -> the environment and the memory plan."""
        prepare_process(self._threads)
        config, device = self._config, device_here(self._config)
        spec = env_spec(config)
        network = initial_network(config, spec)
        plan = checked_plan(config, spec, network)
        if size > 1:
            self._group = LearnerGroup(address, rank, size, device)
        self.learner: Learner = make_learner(config, network, device, plan, self._group)
        return spec, plan.text()

    def publish_first(self, server: Handle) -> None:
        """Give the parameter server θ^(0)."""
        _publish(self.learner.parameters(), 0, server)

    def improve(self, due: Due, server: Handle) -> tuple[list[Metrics], str | None, Counters]:
        """Train the batches; -> metrics of each update, what went wrong if they diverged, and how far training is.

        θ is published once, at the end: actors pull at the beginning of a window.
        """
        newest: list[tuple[dict[str, Tensor], int]] = []
        every = self._config.learner.push_every_updates

        def hold(params: dict[str, Tensor], version: int) -> None:
            newest[:] = [(params, version)]

        trained = improve(self._batches(due.batches), self.learner, hold, every, self._clock)
        updates, diverged = until_diverged(trained)
        if newest and (self._group is None or self._group.rank == 0):
            _publish(*newest[0], server)
        kept = set(due.kept)
        self._windows = {reference: window for reference, window in self._windows.items() if reference in kept}
        return updates, None if diverged is None else str(diverged), self.counters()

    def _batches(self, batches: list[Uses[Ref]]) -> Iterator[Sequence]:
        for uses in batches:
            with self._clock.measure("data"):
                batch = self._part(uses)
            yield batch

    def _part(self, uses: Uses[Ref]) -> Sequence:
        """This learner's part of a batch."""
        group = self._group
        mine = uses if group is None else part_of(uses, group.rank, group.size)
        if mine:
            return self._gather(mine)
        # Beyond the last sequence of a run's last batch: take part with one none of whose steps count.
        nothing = self._gather([(uses[0][0], uses[0][1][:1])])
        nothing.valid[:] = False
        return nothing

    def _gather(self, uses: Uses[Ref]) -> Sequence:
        """A batch. A window is opened once, in place, and stays open until its last use: opening costs time."""
        new = [reference for reference, _ in uses if reference not in self._windows]
        self._windows.update(zip(new, ray.get(new), strict=True))
        return gather_columns([(self._windows[reference], columns) for reference, columns in uses])

    def counters(self) -> Counters:
        return Counters(self.learner.updates, self.learner.skipped_updates, self._clock.take())

    def parameters(self) -> Arrays:
        return to_arrays(self.learner.parameters())

    def state_dict(self) -> State:
        return self.learner.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.learner.load_state_dict(state)


def _publish(params: dict[str, Tensor], version: int, server: Handle) -> None:
    """Write θ to the object store and tell the parameter server of it."""
    ray.get(server.push.remote([ray.put(to_arrays(params))], version))


class EvaluatorWorker:
    """Plays evaluations in environments of its own; may be asked how far it is meanwhile."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config = config
        self._make: Callable[[], Evaluator] = lambda: make_evaluator(
            config, device_here(config), prepare_process(threads)
        )
        self._evaluator: Evaluator | None = None
        self._controllers = make_controllers(config)
        self._played_steps = 0

    def played_steps(self) -> int:
        return self._played_steps

    def evaluate(self, params: Arrays, controllers: State, seed: int) -> Evaluation:
        for i, controller in enumerate(self._controllers):
            controller.load_state_dict(controllers[str(i)])

        def propose(env: int, rng: np.random.Generator) -> Index:
            return controller_of(self._controllers, env).propose_best(rng)

        episodes = self._config.evaluation.episodes
        self._evaluator = self._evaluator or self._make()
        evaluation = self._evaluator.evaluate(to_tensors(params), propose, episodes, seed, self._count)
        assert evaluation is not None  # nobody asks it to stop: it is killed instead
        return evaluation

    def _count(self) -> bool:
        self._played_steps += 1
        return False
