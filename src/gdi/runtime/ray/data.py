"""Data on Ray: windows stay in the object store, where the actor that played them wrote them once.

They travel as references. The collector keeps them and says which of their columns are trained when; the learner reads
these in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import ray

from gdi.acting import Collector
from gdi.acting.collector import Uses
from gdi.config import Config
from gdi.runtime.metrics import collector_metrics
from gdi.runtime.parts import collector_rng
from gdi.runtime.ray.processes import Arrays, Ref
from gdi.types import Metrics, Sequence, State, sequence_of


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
