"""Learning on Ray: a learner, alone or in a group that shares every batch.

Each version of θ is written once.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import ray
from torch import Tensor

from gdi.clock import Clock
from gdi.config import Config
from gdi.data import Draws
from gdi.envs import EnvSpec
from gdi.iteration import improve
from gdi.learner.group import LearnerGroup
from gdi.runtime.factories import configure_process, make_learner
from gdi.runtime.ray.collector_worker import BatchPlan
from gdi.runtime.ray.processes import Arrays, Handle, Ref
from gdi.runtime.ray.tensors import assigned_device, to_arrays
from gdi.types import Array, Batch, Metrics, State, Window, gather_columns


@dataclass(frozen=True)
class LearnerCounters:
    """A learner's counters, and the seconds that it spent since the last query."""

    updates: int
    skipped: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class RemoteImproved:
    """The result of training some batches."""

    updates: list[Metrics]
    batches: int  # the trained ones, including one that raised an error
    diverged: str | None  # the error message, if any
    counters: LearnerCounters
    published: list[Ref]  # the parameter server's answer, if θ was published


class LearnerWorker:
    """A learner, alone or one of a group."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config, self._threads = config, threads
        self._group: LearnerGroup | None = None
        self._clock = Clock()
        self._references: dict[int, Ref] = {}
        self._windows: dict[int, Window] = {}

    def location(self) -> tuple[str, str]:
        """Return the node, and an address on it at which a group can meet."""
        with socket.socket() as free:
            free.bind(("", 0))
            address = f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"
        return str(ray.get_runtime_context().get_node_id()), address

    def start(self, address: str, rank: int, size: int) -> tuple[EnvSpec, str]:
        """Create the learner and join its group; return the environment and the memory plan."""
        configure_process(self._threads)
        device = assigned_device(self._config)
        if size > 1:
            self._group = LearnerGroup(address, rank, size, device)
        self.learner, spec, plan = make_learner(self._config, device, self._group)
        return spec, plan.summary()

    def publish_initial(self, server: Handle) -> None:
        """Send the initial parameters (θ^(0)) to the parameter server."""
        ray.get(_publish(self.learner.parameters(), 0, server))

    def improve(self, due: BatchPlan, server: Handle) -> RemoteImproved:
        """Train the batches.

        θ is published once, at the end, because actors pull at the start of a window. The driver waits for the
        parameter server's answer, which takes longer than an update on a busy machine.
        """
        self._references |= due.new
        every = self._config.data.push_every_updates
        improved = improve(self._batches(due.draws), self.learner, every, self._clock)
        answer = []
        if improved.published is not None and (self._group is None or self._group.rank == 0):
            answer = [_publish(improved.published.params, improved.published.version, server)]
        kept = set(due.kept)
        self._windows = {key: window for key, window in self._windows.items() if key in kept}
        self._references = {key: reference for key, reference in self._references.items() if key in kept}
        diverged = None if improved.diverged is None else str(improved.diverged)
        return RemoteImproved(improved.updates, improved.batches, diverged, self.counters(), answer)

    def _batches(self, draws: Draws) -> Iterator[Batch]:
        for number in range(len(draws)):
            with self._clock.measure("data"):
                batch = self._part(draws, number)
            yield batch

    def _part(self, draws: Draws, number: int) -> Batch:
        """Return this learner's share of a batch."""
        group = self._group
        mine = draws.batch(number) if group is None else draws.batch(number, group.rank, group.size)
        if mine:
            return self._gather(mine)
        # The run's last batch may be too small for this learner. It then takes part with a sequence without valid
        # steps.
        key, columns = draws.batch(number)[0]
        nothing = self._gather([(key, columns[:1])])
        nothing.valid[:] = False
        return nothing

    def _gather(self, batch: list[tuple[int, Array]]) -> Batch:
        """Gather the columns of a batch.

        A window is opened once, in place, and stays open until its last use, because opening it costs time.
        """
        new = [key for key, _ in batch if key not in self._windows]
        self._windows.update(zip(new, ray.get([self._references[key] for key in new]), strict=True))
        return gather_columns([(self._windows[key], columns) for key, columns in batch])

    def counters(self) -> LearnerCounters:
        return LearnerCounters(self.learner.updates, self.learner.skipped_updates, self._clock.take())

    def parameters(self) -> Arrays:
        return to_arrays(self.learner.parameters())

    def state_dict(self) -> State:
        return self.learner.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.learner.load_state_dict(state)


def _publish(params: dict[str, Tensor], version: int, server: Handle) -> Ref:
    """Write θ to the object store and notify the parameter server; return a reference to its answer."""
    return server.push.remote([ray.put(to_arrays(params))], version)
