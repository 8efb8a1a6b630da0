"""Learning on Ray: a learner, alone or one of a group that shares every batch. It writes θ once per version."""

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
from gdi.runtime.parts import make_learner, prepare_process
from gdi.runtime.ray.data import Due
from gdi.runtime.ray.processes import Arrays, Handle, Ref
from gdi.runtime.ray.tensors import device_here, to_arrays
from gdi.types import Array, Batch, Metrics, State, Window, gather_columns


@dataclass(frozen=True)
class Counters:
    """How far a learner is, and the seconds that it spent since it was last asked."""

    updates: int
    skipped: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class RemoteImproved:
    """What came of some batches."""

    updates: list[Metrics]
    batches: int  # that are done, the one that raised an error included
    diverged: str | None  # what went wrong
    counters: Counters
    published: list[Ref]  # the parameter server's answer, if θ was published


class LearnerWorker:
    """A learner, alone or one of a group."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config, self._threads = config, threads
        self._group: LearnerGroup | None = None
        self._clock = Clock()
        self._references: dict[int, Ref] = {}
        self._windows: dict[int, Window] = {}

    def where(self) -> tuple[str, str]:
        """-> the node, and an address there at which a group can meet."""
        with socket.socket() as free:
            free.bind(("", 0))
            address = f"{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"
        return str(ray.get_runtime_context().get_node_id()), address

    def start(self, address: str, rank: int, size: int) -> tuple[EnvSpec, str]:
        """Make the learner, and meet the others of its group; -> the environment and the memory plan."""
        prepare_process(self._threads)
        device = device_here(self._config)
        if size > 1:
            self._group = LearnerGroup(address, rank, size, device)
        self.learner, spec, plan = make_learner(self._config, device, self._group)
        return spec, plan.text()

    def publish_first(self, server: Handle) -> None:
        """Give the parameter server θ^(0)."""
        ray.get(_publish(self.learner.parameters(), 0, server))

    def improve(self, due: Due, server: Handle) -> RemoteImproved:
        """Train the batches.

        θ is published once, at the end: actors pull at the beginning of a window. The parameter server's answer is for
        the driver to wait for: on a busy machine it takes longer than an update.
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
        """This learner's part of a batch."""
        group = self._group
        mine = draws.batch(number) if group is None else draws.batch(number, group.rank, group.size)
        if mine:
            return self._gather(mine)
        # Beyond the last sequence of a run's last batch: take part with one none of whose steps count.
        key, columns = draws.batch(number)[0]
        nothing = self._gather([(key, columns[:1])])
        nothing.valid[:] = False
        return nothing

    def _gather(self, batch: list[tuple[int, Array]]) -> Batch:
        """A window is opened once, in place, and stays open until its last use: opening costs time."""
        new = [key for key, _ in batch if key not in self._windows]
        self._windows.update(zip(new, ray.get([self._references[key] for key in new]), strict=True))
        return gather_columns([(self._windows[key], columns) for key, columns in batch])

    def counters(self) -> Counters:
        return Counters(self.learner.updates, self.learner.skipped_updates, self._clock.take())

    def parameters(self) -> Arrays:
        return to_arrays(self.learner.parameters())

    def state_dict(self) -> State:
        return self.learner.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.learner.load_state_dict(state)


def _publish(params: dict[str, Tensor], version: int, server: Handle) -> Ref:
    """Write θ to the object store and tell the parameter server of it; -> its answer, once it knows."""
    return server.push.remote([ray.put(to_arrays(params))], version)
