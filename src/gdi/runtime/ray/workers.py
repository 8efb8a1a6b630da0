"""The parts as Ray actors: each makes its part where it lives, and runs its step of Algorithm 1 there.

Windows are written to Ray's object store once, by the actor that played them, and travel as references: the collector
keeps them, the learner reads their columns in place. θ is written once per version by the learner.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ray
import torch
from torch import Tensor

from gdi.acting import Collector
from gdi.acting.collector import Uses
from gdi.acting.parameters import Newest
from gdi.clock import Clock
from gdi.config import Config
from gdi.envs import EnvSpec
from gdi.evaluation import Evaluation
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
    """The GPU that Ray gave this process, if it gave one and the config does not say cpu."""
    return resolve_device("cpu" if config.run.device == "cpu" else "auto")


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
        threads = prepare_process(threads)
        self._controller = controller
        self._parameters = PulledParameters(server)
        self._actor = make_actor(config, self._parameters, device_here(config), threads, Clock(), *which)
        self._first_env = number * config.env.num_envs

    def ready(self) -> str:
        """The node it lives on."""
        return str(ray.get_runtime_context().get_node_id())

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

    def load_state_dict(self, state: State) -> None:
        self._actor.load_state_dict(state)


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

    def take(self, last: bool) -> list[list[tuple[Ref, Array]]]:
        """Add what arrived, and hand out every batch that is due."""
        due: list[list[tuple[Ref, Array]]] = []
        for window in self._arrived:
            self._collector.add(window)
            due += self._batches(partial=False)
        self._arrived.clear()
        if last:
            self._collector.finish()
            due += self._batches(partial=True)
        return due

    def _batches(self, partial: bool) -> Iterator[list[tuple[Ref, Array]]]:
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


class LearnerWorker:
    """A learner, alone or one of a group."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config, self._threads = config, prepare_process(threads)
        self._device = device_here(config)
        self._spec = env_spec(config)
        network = initial_network(config, self._spec)
        self._plan = checked_plan(config, self._spec, network)
        self._network = network
        self._group: LearnerGroup | None = None
        self._learner: Learner | None = None
        self._clock = Clock()

    def describe(self) -> tuple[EnvSpec, str, str, str]:
        """-> the environment, the memory plan, the node, and an address at which a group can meet."""
        with socket.socket() as free:
            free.bind(("", 0))
            address = f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"
        return self._spec, self._plan.text(), str(ray.get_runtime_context().get_node_id()), address

    def join(self, address: str, rank: int, size: int) -> None:
        """Begin, once all learners of the group are there."""
        if size > 1:
            self._group = LearnerGroup(address, rank, size, self._device)
        self._learner = make_learner(self._config, self._network, self._device, self._plan, self._group)

    @property
    def learner(self) -> Learner:
        assert self._learner is not None, "join comes first"
        return self._learner

    def publish(self, server: Handle, version: int) -> None:
        """Write θ to the object store and tell the parameter server of it."""
        reference = ray.put(to_arrays(self.learner.parameters()))
        ray.get(server.push.remote([reference], version))

    def improve(
        self, due: list[list[tuple[Ref, Array]]], server: Handle
    ) -> tuple[list[Metrics], str | None, dict[str, int]]:
        """Train the batches; -> metrics of each update, what went wrong if they diverged, and the counters after it.

        θ is published once, at the end: actors pull at the beginning of a window.
        """
        newest: list[int] = []
        every = self._config.learner.push_every_updates

        def hold(params: dict[str, Tensor], version: int) -> None:
            newest[:] = [version]

        trained = improve(self._batches(due), self.learner, hold, every, self._clock)
        updates, diverged = until_diverged(trained)
        if newest and (self._group is None or self._group.rank == 0):
            self.publish(server, newest[0])
        return updates, None if diverged is None else str(diverged), self.counters()

    def _batches(self, due: list[list[tuple[Ref, Array]]]) -> Iterator[Sequence]:
        group = self._group
        for uses in due:
            mine = uses if group is None else part_of(uses, group.rank, group.size)
            yield _empty_part(uses) if not mine else _gathered(mine)

    def counters(self) -> dict[str, int]:
        return {"updates": self.learner.updates, "skipped": self.learner.skipped_updates}

    def parameters(self) -> Arrays:
        return to_arrays(self.learner.parameters())

    def state_dict(self) -> State:
        return self.learner.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.learner.load_state_dict(state)


def _gathered(uses: list[tuple[Ref, Array]]) -> Sequence:
    windows = ray.get([reference for reference, _ in uses])
    return gather_columns([(window, columns) for window, (_, columns) in zip(windows, uses, strict=True)])


def _empty_part(uses: list[tuple[Ref, Array]]) -> Sequence:
    """One sequence none of whose steps count: for a learner beyond the last sequence of a run's last batch."""
    batch = _gathered([(uses[0][0], uses[0][1][:1])])
    batch.valid[:] = False
    return batch


class EvaluatorWorker:
    """Plays evaluations in environments of its own."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config = config
        threads = prepare_process(threads)
        self._evaluator = make_evaluator(config, device_here(config), threads)
        self._controllers = make_controllers(config)

    def evaluate(self, params: Arrays, controllers: State, seed: int) -> Evaluation:
        for i, controller in enumerate(self._controllers):
            controller.load_state_dict(controllers[str(i)])

        def propose(env: int, rng: np.random.Generator) -> Index:
            return controller_of(self._controllers, env).propose_best(rng)

        episodes = self._config.evaluation.episodes
        evaluation = self._evaluator.evaluate(to_tensors(params), propose, episodes, seed)
        assert evaluation is not None  # nobody asks it to stop: it is killed instead
        return evaluation
