"""Data on Ray: windows stay in the object store, where the actor that played them wrote them once.

The collector keeps references to them and says which of their columns are trained when; the learner is sent each
reference once, and then only numbers: a reference costs its receiver a message to the owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import ray

from gdi.acting.collector import Collector
from gdi.config import Config
from gdi.runtime.metrics import collector_metrics
from gdi.runtime.ray.processes import Arrays, Ref
from gdi.seeds import collector_rng
from gdi.types import Metrics, Sequence, State, sequence_of


class StoredWindow:
    """A window in the object store: its number, and its arrays in place.

    Holding the arrays keeps a copy on this node, so that the window outlives the node that it came from.
    """

    def __init__(self, number: int, reference: Ref) -> None:
        self.number = number
        self._sequence: Sequence = ray.get(reference)

    @property
    def num_sequences(self) -> int:
        return self._sequence.num_sequences

    @property
    def num_bytes(self) -> int:
        return self._sequence.num_bytes

    def arrays(self) -> Arrays:
        return self._sequence.arrays()


Columns = list[tuple[int, list[int]]]
"""One batch: columns of windows, by the windows' numbers."""


@dataclass(frozen=True)
class Due:
    """Batches to train now, the windows that no one before named, and all those that will be used again later."""

    batches: list[Columns]
    new: dict[int, Ref]
    kept: list[int]


class CollectorWorker:
    """Which columns of which windows are trained next."""

    def __init__(self, config: Config, span_windows: int) -> None:
        learner = replace(config.learner, replay_span_windows=span_windows)
        self._collector: Collector[StoredWindow] = Collector(
            learner, collector_rng(config), lambda arrays: self._stored(ray.put(sequence_of(arrays)))
        )
        self._numbers = count()
        self._arrived: list[StoredWindow] = []
        self._new: dict[int, Ref] = {}  # not yet named to the learner

    def _stored(self, reference: Ref) -> StoredWindow:
        window = StoredWindow(next(self._numbers), reference)
        self._new[window.number] = reference
        return window

    def accept(self, references: list[Ref]) -> None:
        """A window has arrived once this returns; it raises if the window was lost on its way."""
        self._arrived.append(self._stored(references[0]))

    def take(self, last: bool) -> Due:
        """Add what arrived, and hand out every batch that is due."""
        batches: list[Columns] = []
        # A local run that acted and learned at the same time leaves batches that are due.
        batches += self._batches(partial=False)
        for window in self._arrived:
            self._collector.add(window)
            batches += self._batches(partial=False)
        self._arrived.clear()
        if last:
            self._collector.finish()
            batches += self._batches(partial=True)
        new, self._new = self._new, {}
        return Due(batches, new, [window.number for window in self._collector.windows])

    def _batches(self, partial: bool) -> Iterator[Columns]:
        while (uses := self._collector.next_uses(allow_partial=partial)) is not None:
            yield [(window.number, columns.tolist()) for window, columns in uses]

    def metrics(self) -> Metrics:
        return collector_metrics(self._collector)

    def state_dict(self) -> State:
        return self._collector.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._collector.load_state_dict(state)
