"""Data on Ray: windows stay in the object store, where the actor that played them wrote them once.

The collector keeps references to the windows and decides which of their columns are trained when. The learner receives
each reference once, and only numbers after that, because a reference costs its receiver a message to the owner.

With sampled replay the learner copies each window, and the object store holds windows on their way only. The collector
then keeps numbers only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import ray

from gdi.config import Config
from gdi.data import Draws, Origin, collector_state, join_draws, make_replay
from gdi.runtime.ray.processes import Arrays, Ref
from gdi.types import Array, Metrics, State, Window, window_from


class StoredWindow:
    """A window in the object store, whose arrays are not copied.

    Holding the arrays keeps a copy on this node, so the window outlives the node that played it.
    """

    def __init__(self, reference: Ref) -> None:
        self.reference = reference
        self._window: Window = ray.get(reference)

    @property
    def num_sequences(self) -> int:
        return self._window.num_sequences

    @property
    def valid(self) -> Array:
        return self._window.valid

    @property
    def episode_start(self) -> Array:
        return self._window.episode_start

    @property
    def num_bytes(self) -> int:
        return self._window.num_bytes

    def arrays(self) -> Arrays:
        return self._window.arrays()


@dataclass(frozen=True)
class BatchPlan:
    """The batches to train, the windows that are new to the learner, and those still needed."""

    draws: Draws
    new: dict[int, Ref]
    kept: list[int]


class CollectorWorker:
    """The choice of the columns and windows that are trained next."""

    def __init__(self, config: Config, streams: int) -> None:
        self._config = config
        self._replay = make_replay(config, streams)
        self._windows: dict[int, StoredWindow] = {}
        self._arrived: list[tuple[StoredWindow, Origin]] = []
        self._new: dict[int, Ref] = {}  # not sent to the learner yet
        # Windows of each plan that is not reported as trained yet. The learner may not have copied them.
        self._in_transit: deque[list[StoredWindow]] = deque()

    def _put(self, key: int, window: StoredWindow) -> None:
        self._windows[key] = window
        self._new[key] = window.reference

    def accept(self, references: list[Ref], origin: Origin) -> None:
        """Receive a window, or raise if it was lost on its way; it has arrived once this returns."""
        self._arrived.append((StoredWindow(references[0]), origin))

    def take(self, last: bool) -> BatchPlan:
        """Add the windows that arrived and return every batch that is due."""
        # After a local run with overlap, batches may be due before any window arrives.
        draws = [self._replay.due(last=False)]
        for window, origin in self._arrived:
            self._put(self._replay.add(window, origin), window)
            draws.append(self._replay.due(last=False))
        self._in_transit.append([window for window, _ in self._arrived])
        self._arrived.clear()
        if last:
            draws.append(self._replay.due(last=True))
        new, self._new = self._new, {}
        return BatchPlan(join_draws(draws), new, self._replay.kept())

    def learned(self, batches: int) -> None:
        """Mark the oldest ``batches`` returned batches as trained."""
        self._replay.learned(batches)
        self._in_transit.popleft()
        self._windows = {key: self._windows[key] for key in self._replay.kept()}

    def metrics(self) -> Metrics:
        return {
            "collector/waiting_sequences": self._replay.waiting,
            "collector/windows": len(self._windows),
            "collector/bytes": sum(window.num_bytes for window in self._windows.values()),
        }

    def state_dict(self) -> State:
        windows = {str(key): {"arrays": window.arrays()} for key, window in self._windows.items()}
        return collector_state(self._replay.state_dict(), {"windows": windows} if self._config.run.save_replay else {})

    def load_state_dict(self, state: State, arrays: bool) -> None:
        self._replay.load_state_dict(state, arrays=arrays)
        for key in self._replay.kept():
            window = window_from(state["windows"][str(key)]["arrays"])
            self._put(key, StoredWindow(ray.put(window)))
