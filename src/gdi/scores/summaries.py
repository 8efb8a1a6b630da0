"""One agent's aggregates over the games, with their confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gdi.scores import metrics
from gdi.scores.agents import Agent
from gdi.scores.counts import Counts
from gdi.scores.intervals import Bootstrap, batch_size, confidence_interval, has_seeds
from gdi.scores.reference import Array, Reference
from gdi.scores.tables import Cell, Estimate

CRITERION_LABELS = {"hns": "HNS", "hwrns": "HWRNS", "saber": "SABER"}
STATISTIC_LABELS = {"mean": "mean", "median": "median", "iqm": "IQM", "optimality_gap": "optimality gap"}

# The twelve aggregates of a score matrix, in the order of `aggregate_vector`. HWRB comes after them.
AGGREGATES = tuple(f"{statistic}_{criterion}" for criterion in metrics.CRITERIA for statistic in metrics.STATISTICS)


@dataclass(frozen=True)
class Summary:
    """One agent's aggregates as fractions, with intervals if there are seeds."""

    agent: Agent
    games: int
    values: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def cell(self, name: str, scale: float = 1.0) -> Cell:
        """Return an aggregate for a table, with its interval if it has one."""
        value = self.values[name] * scale
        if name not in self.intervals:
            return value
        low, high = self.intervals[name]
        return Estimate(value, low * scale, high * scale)

    def efficiency(self, name: str) -> float | None:
        """Return the learning efficiency of an aggregate, or None if the number of frames is unknown."""
        if self.agent.frames is None:
            return None
        return metrics.learning_efficiency(self.values[name], self.agent.frames)


def aggregate_vector(scores: Array, reference: Reference, counts: Counts | None = None) -> Array:
    """Return all `AGGREGATES` and HWRB of score matrices ``[..., runs, games]``, as ``[..., 13]``."""
    columns = []
    for criterion in metrics.CRITERIA.values():
        normalized = criterion(scores, reference)
        # Mean and median are of the same game means, which are a matrix of a single run.
        per_game = metrics.game_means(normalized, counts)[..., None, :]
        columns += [metrics.mean(per_game), metrics.median(per_game)]
        columns += [metrics.iqm(normalized, counts), metrics.optimality_gap(normalized, counts)]
    return np.stack([*columns, metrics.hwrb(scores, reference, counts)], axis=-1)


def summarize(agent: Agent, reference: Reference, bootstrap: Bootstrap | None = None) -> Summary:
    """Return all aggregates of one agent.

    Confidence intervals are added if the agent has seeds and `bootstrap` is set.
    """
    names = (*AGGREGATES, "hwrb")
    scores, reference = agent.scores[:, agent.reported], reference.restricted_to(agent.reported)
    values = dict(zip(names, map(float, aggregate_vector(scores, reference)), strict=True))
    intervals: dict[str, tuple[float, float]] = {}
    if bootstrap is not None and bootstrap.replicates and has_seeds(scores):
        low, high = confidence_interval(
            lambda scores, counts: aggregate_vector(scores, reference, counts),
            scores,
            bootstrap=bootstrap,
            batch=batch_size(agent.scores),  # of all games, so that a missing game does not change the draws
        )
        intervals = {name: (float(a), float(b)) for name, a, b in zip(names, low, high, strict=True)}
    return Summary(agent, int(agent.reported.sum()), values, intervals)


def replicate_notes(agent: Agent, bootstrap: Bootstrap) -> list[str]:
    """Say that an agent with very many scores has fewer replicates."""
    replicates = bootstrap.replicates_for(agent.scores)
    if replicates == bootstrap.replicates or not has_seeds(agent.scores):
        return []
    number = int(np.isfinite(agent.scores).sum())
    return [
        f"{agent.name} has {number:,} scores; its intervals use {replicates:,} bootstrap replicates instead of "
        f"{bootstrap.replicates:,}."
    ]
