"""Numbers for the log: averages between two lines, and what the controller believes."""

from __future__ import annotations

import numpy as np

from gdi.acting.collector import Collector, W
from gdi.controller import Controller
from gdi.types import Metrics, State


class Averages:
    """Means of metrics since the last line; part of a checkpoint, so that a resumed run writes the same line."""

    def __init__(self) -> None:
        self._sums: Metrics = {}
        self._counts: dict[str, int] = {}
        self.since_steps = 0

    def add(self, metrics: Metrics) -> None:
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def take(self, steps: int) -> Metrics:
        """The means, and begin anew."""
        means = {name: total / self._counts[name] for name, total in self._sums.items()}
        self._sums, self._counts, self.since_steps = {}, {}, steps
        return means

    @property
    def is_empty(self) -> bool:
        return not self._sums

    def state_dict(self) -> State:
        return {"sums": dict(self._sums), "counts": dict(self._counts), "since_steps": self.since_steps}

    def load_state_dict(self, state: State) -> None:
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
        self.since_steps = int(state["since_steps"])


def collector_metrics(collector: Collector[W]) -> Metrics:
    return {
        "collector/windows": len(collector.windows),
        "collector/waiting_sequences": collector.waiting,
        "collector/bytes": collector.num_bytes,
    }


def controller_metrics(controllers: list[Controller]) -> dict[str, float | list[float]]:
    """Per searched axis: value, count and probability of each block, the best block and the top block's probability.

    With a controller per environment this is their mean.
    """
    out: dict[str, float | list[float]] = {}
    for axis in zip(*(controller.favourites() for controller in controllers), strict=True):
        name = f"controller/{axis[0].axis}"
        value = np.mean([favourite.value for favourite in axis], axis=0)
        count = np.mean([favourite.count for favourite in axis], axis=0)
        probability = np.mean([favourite.probability for favourite in axis], axis=0)
        out |= {
            f"{name}/block_value": [round(v, 4) for v in value.tolist()],
            f"{name}/block_count": [round(n, 1) for n in count.tolist()],
            f"{name}/block_probability": [round(p, 5) for p in probability.tolist()],
            f"{name}/best_block": float(value.argmax()),
            f"{name}/top_block_probability": float(probability.max()),
        }
    return out
