"""Numbers for the log: averages between two lines, and the controller's beliefs."""

from __future__ import annotations

from gdi.controller import Controller
from gdi.data import Store
from gdi.types import Metrics, State


class Averages:
    """Means of metrics since the last line.

    They are part of a checkpoint, so a resumed run writes the same line.
    """

    def __init__(self) -> None:
        self._sums: Metrics = {}
        self._counts: dict[str, int] = {}
        self.since_steps = 0

    def add(self, metrics: Metrics) -> None:
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def take(self, steps: int) -> Metrics:
        """Return the means and reset them."""
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


def held_metrics(store: Store) -> Metrics:
    return {"collector/windows": len(store), "collector/bytes": store.num_bytes}


def controller_metrics(controller: Controller) -> dict[str, float | list[float]]:
    """Return the value, count and probability of each block per searched axis.

    The best block and the top block's probability are included.
    """
    out: dict[str, float | list[float]] = {}
    for belief in controller.belief():
        name = f"controller/{belief.axis}"
        out |= {
            f"{name}/block_value": [round(v, 4) for v in belief.value.tolist()],
            f"{name}/block_count": [round(n, 1) for n in belief.count.tolist()],
            f"{name}/block_probability": [round(p, 5) for p in belief.probability.tolist()],
            f"{name}/best_block": float(belief.value.argmax()),
            f"{name}/top_block_probability": float(belief.probability.max()),
        }
    return out
