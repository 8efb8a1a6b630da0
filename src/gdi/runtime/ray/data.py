"""Data on Ray: windows stay in the object store, where the actor that played them wrote them once.

The collector keeps references to them and says which of their columns are trained when; the learner is sent each
reference once, and then only numbers: a reference costs its receiver a message to the owner.
"""

from __future__ import annotations

from dataclasses import dataclass

import ray

from gdi.config import Config
from gdi.data import Draws, collector_state, join_draws, load_collector_state, make_replay
from gdi.runtime.metrics import collector_metrics
from gdi.runtime.ray.processes import Arrays, Ref
from gdi.types import Metrics, State, Window


class StoredWindow:
    """A window in the object store, its arrays in place.

    Holding the arrays keeps a copy on this node, so that the window outlives the node that it came from.
    """

    def __init__(self, reference: Ref) -> None:
        self.reference = reference
        self._window: Window = ray.get(reference)

    @property
    def num_sequences(self) -> int:
        return self._window.num_sequences

    @property
    def num_bytes(self) -> int:
        return self._window.num_bytes

    def arrays(self) -> Arrays:
        return self._window.arrays()


@dataclass(frozen=True)
class Due:
    """Batches to train now, the windows that no one named before, and all those that are still needed."""

    draws: Draws
    new: dict[int, Ref]
    kept: list[int]


class CollectorWorker:
    """Which columns of which windows are trained next."""

    def __init__(self, config: Config) -> None:
        self._replay = make_replay(config)
        self._windows: dict[int, StoredWindow] = {}
        self._arrived: list[StoredWindow] = []
        self._new: dict[int, Ref] = {}  # not yet named to the learner

    def _put(self, key: int, window: StoredWindow) -> None:
        self._windows[key] = window
        self._new[key] = window.reference

    def accept(self, references: list[Ref]) -> None:
        """A window has arrived once this returns; it raises if the window was lost on its way."""
        self._arrived.append(StoredWindow(references[0]))

    def take(self, last: bool) -> Due:
        """Add what arrived, and hand out every batch that is due."""
        # A local run that acted and learned at the same time leaves batches that are due.
        draws = [self._replay.due(last=False)]
        for window in self._arrived:
            self._put(self._replay.add(window.num_sequences), window)
            draws.append(self._replay.due(last=False))
        self._arrived.clear()
        if last:
            draws.append(self._replay.due(last=True))
        new, self._new = self._new, {}
        return Due(join_draws(draws), new, self._replay.kept())

    def learned(self, batches: int) -> None:
        """The oldest so many batches that were handed out are done."""
        self._replay.learned(batches)
        self._windows = {key: self._windows[key] for key in self._replay.kept()}

    def metrics(self) -> Metrics:
        return collector_metrics(
            self._replay, len(self._windows), sum(window.num_bytes for window in self._windows.values())
        )

    def state_dict(self) -> State:
        return collector_state(self._replay, {key: window.arrays() for key, window in self._windows.items()})

    def load_state_dict(self, state: State) -> None:
        for key, arrays in load_collector_state(self._replay, state).items():
            self._put(key, StoredWindow(ray.put(Window(**arrays))))
