"""Learning on Ray: a learner, alone or in a group that shares every batch.

Each version of θ is written once.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ray
from torch import Tensor

from gdi.clock import Clock
from gdi.config import Config
from gdi.data import Draws, SavedFiles, make_store
from gdi.envs import EnvSpec
from gdi.errors import UserError
from gdi.iteration import improve
from gdi.learner.group import LearnerGroup
from gdi.runtime.factories import configure_process, make_learner
from gdi.runtime.metrics import held_metrics
from gdi.runtime.ray.collector_worker import BatchPlan
from gdi.runtime.ray.processes import Arrays, Handle, Ref
from gdi.runtime.ray.tensors import assigned_device, to_arrays
from gdi.types import Batch, Metrics, State, column_slice


@dataclass(frozen=True)
class LearnerCounters:
    """A learner's counters, and the seconds that it spent since the last query."""

    updates: int
    skipped: int
    seconds: dict[str, float]
    memory: Metrics  # of the replay whose steps the learner holds; nothing if the collector does


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

    def __init__(self, config: Config, threads: int, streams: int) -> None:
        self._config, self._threads = config, threads
        self._group: LearnerGroup | None = None
        self._clock = Clock()
        self._references: dict[int, Ref] = {}
        self._store = make_store(config, streams)
        self._opened: set[int] = set()

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
        self._receive(due.new)
        every = self._config.data.push_every_updates
        improved = improve(self._batches(due.draws), self.learner, every, self._clock)
        answer = []
        if improved.published is not None and (self._group is None or self._group.rank == 0):
            answer = [_publish(improved.published.params, improved.published.version, server)]
        kept = set(due.kept)
        self._opened &= kept
        self._store.keep(self._opened)
        self._references = {key: reference for key, reference in self._references.items() if key in kept}
        diverged = None if improved.diverged is None else str(improved.diverged)
        return RemoteImproved(improved.updates, improved.batches, diverged, self.counters(), answer)

    def _receive(self, new: dict[int, Ref]) -> None:
        """Copy the new windows, or keep their references if the store opens them in place."""
        if not self._store.copies:
            self._references |= new
            return
        for key, window in zip(new, ray.get(list(new.values())), strict=True):
            self._store.put(key, window)

    def _batches(self, draws: Draws) -> Iterator[Batch]:
        for number in range(len(draws)):
            with self._clock.measure("data"):
                batch = self._part(draws, number)
            yield batch

    def _part(self, draws: Draws, number: int) -> Batch:
        """This learner's part of a batch."""
        rank, size = (0, 1) if self._group is None else (self._group.rank, self._group.size)
        if not self._store.copies:
            self._open([key for key, _, _ in draws.batch(number, rank, size) or draws.batch(number)])
        mine = self._store.gather(draws, number, rank, size)
        if mine is not None:
            return mine
        # Beyond the last sequence of a run's last batch: take part with one none of whose steps count.
        whole = self._store.gather(draws, number)
        assert whole is not None
        nothing = column_slice(whole, 0, 1)
        nothing.valid[:] = False
        return nothing

    def _open(self, keys: list[int]) -> None:
        """Open windows in place. Each is opened once and stays open until its last use: opening costs time."""
        new = [key for key in keys if key not in self._opened]
        for key, window in zip(new, ray.get([self._references[key] for key in new]), strict=True):
            self._store.put(key, window)
        self._opened |= set(new)

    def counters(self) -> LearnerCounters:
        memory = held_metrics(self._store) if self._store.copies else {}
        return LearnerCounters(self.learner.updates, self.learner.skipped_updates, self._clock.take(), memory)

    def parameters(self) -> Arrays:
        return to_arrays(self.learner.parameters())

    def state_dict(self) -> State:
        return self.learner.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.learner.load_state_dict(state)

    def save_replay(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        """Write or link the slots that this process holds."""
        if not folder.is_dir():
            raise UserError(
                f"the learner's machine does not see {folder}: put --run-dir on a disk that all machines share, or add "
                "--run.no-save-replay."
            )
        return self._store.save(folder, before)

    def load_replay(self, saved: SavedFiles) -> bool:
        return self._store.load(saved)


def _publish(params: dict[str, Tensor], version: int, server: Handle) -> Ref:
    """Write θ to the object store and notify the parameter server; return a reference to its answer."""
    return server.push.remote([ray.put(to_arrays(params))], version)
