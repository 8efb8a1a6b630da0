"""Learning on Ray: a learner, alone or one of a group that shares every batch. It writes θ once per version."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import ray
from torch import Tensor

from gdi.clock import Clock
from gdi.config import Config
from gdi.envs import EnvSpec
from gdi.iteration import improve, until_diverged
from gdi.learner.group import LearnerGroup
from gdi.runtime.parts import make_learner, prepare_process
from gdi.runtime.ray.data import Columns, Due
from gdi.runtime.ray.processes import Arrays, Handle, Ref
from gdi.runtime.ray.tensors import device_here, to_arrays
from gdi.types import Metrics, Sequence, State, gather_columns


def part_of(batch: Columns, rank: int, size: int) -> Columns:
    """The columns of a batch that one of ``size`` learners trains: parts as equal as can be, none lost."""
    owners = [(i, column) for i, (_, columns) in enumerate(batch) for column in columns]
    begin, end = rank * len(owners) // size, (rank + 1) * len(owners) // size
    return [
        (window, [column for owner, column in owners[begin:end] if owner == i])
        for i, (window, _) in enumerate(batch)
        if any(owner == i for owner, _ in owners[begin:end])
    ]


@dataclass(frozen=True)
class Counters:
    """How far a learner is, and the seconds that it spent since it was last asked."""

    updates: int
    skipped: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class Improved:
    """What came of some batches."""

    updates: list[Metrics]
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
        self._windows: dict[int, Sequence] = {}

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

    def improve(self, due: Due, server: Handle) -> Improved:
        """Train the batches.

        θ is published once, at the end: actors pull at the beginning of a window. The parameter server's answer is for
        the driver to wait for: on a busy machine it takes longer than an update.
        """
        self._references |= due.new
        newest: list[tuple[dict[str, Tensor], int]] = []
        every = self._config.learner.push_every_updates

        def hold(params: dict[str, Tensor], version: int) -> None:
            newest[:] = [(params, version)]

        trained = improve(self._batches(due.batches), self.learner, hold, every, self._clock)
        updates, diverged = until_diverged(trained)
        published = []
        if newest and (self._group is None or self._group.rank == 0):
            published = [_publish(*newest[0], server)]
        kept = set(due.kept)
        self._windows = {number: window for number, window in self._windows.items() if number in kept}
        self._references = {number: reference for number, reference in self._references.items() if number in kept}
        return Improved(updates, None if diverged is None else str(diverged), self.counters(), published)

    def _batches(self, batches: list[Columns]) -> Iterator[Sequence]:
        for columns in batches:
            with self._clock.measure("data"):
                batch = self._part(columns)
            yield batch

    def _part(self, batch: Columns) -> Sequence:
        """This learner's part of a batch."""
        group = self._group
        mine = batch if group is None else part_of(batch, group.rank, group.size)
        if mine:
            return self._gather(mine)
        # Beyond the last sequence of a run's last batch: take part with one none of whose steps count.
        nothing = self._gather([(batch[0][0], batch[0][1][:1])])
        nothing.valid[:] = False
        return nothing

    def _gather(self, batch: Columns) -> Sequence:
        """A window is opened once, in place, and stays open until its last use: opening costs time."""
        new = [number for number, _ in batch if number not in self._windows]
        self._windows.update(zip(new, ray.get([self._references[number] for number in new]), strict=True))
        return gather_columns([(self._windows[number], np.array(columns)) for number, columns in batch])

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
