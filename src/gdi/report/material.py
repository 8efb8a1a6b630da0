"""What every section of a report draws from: the runs, their groups, and one look per agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gdi.report.groups import Group, agent_key, agent_labels, group_runs
from gdi.report.log import clock_series, series
from gdi.report.runs import Run
from gdi.scores import runs as scored
from gdi.scores.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, STYLES, VERMILION
from gdi.scores.tables import Cell, Estimate

COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GRAY)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True)
class Look:
    """The color and dash of an agent. Both differ between neighbors, so that color alone decides nothing."""

    color: str
    dash: str


PAPERS = {"gdi-i3": Look(STYLES["GDI-I3"].color, "solid"), "gdi-h3": Look(STYLES["GDI-H3"].color, "solid")}


@dataclass(frozen=True)
class Material:
    """The runs of a report."""

    runs: tuple[Run, ...]
    groups: tuple[Group, ...]
    looks: Mapping[str, Look]  # by agent
    baseline: str = ""  # the agent whose mean score is 1 in every game; empty without one

    @property
    def agents(self) -> list[str]:
        return list(self.looks)

    @property
    def envs(self) -> list[str]:
        return sorted({group.env for group in self.groups})

    def groups_in(self, env: str) -> list[Group]:
        return [group for group in self.groups if group.env == env]

    def agent_of(self, run: Run) -> str:
        return next(group.agent for group in self.groups if any(run is other for other in group.runs))


def make_material(runs: Sequence[Run], baseline: str = "") -> Material:
    """Group the runs, and give every agent its look."""
    groups = group_runs(runs)
    agents = list(dict.fromkeys(group.agent for group in groups))
    return Material(tuple(runs), tuple(groups), looks_of(agents), baseline)


def looks_of(agents: Sequence[str]) -> dict[str, Look]:
    """Return a look per agent. The paper's two agents have the colors that they have among published scores."""
    free = [color for color in COLORS if color not in {PAPERS[agent].color for agent in agents if agent in PAPERS}]
    others = [agent for agent in agents if agent not in PAPERS]
    found = {
        agent: Look(free[i % len(free)], DASHES[(i % len(free) + i // len(free)) % len(DASHES)])
        for i, agent in enumerate(others)
    }
    return {agent: PAPERS.get(agent) or found[agent] for agent in agents}


def run_label(material: Material, run: Run) -> str:
    """Return a short name of a run: its agent, its environment if there are several, and its seed."""
    labels = agent_labels(material.runs)
    parts = [labels[agent_key(run)], *([run.env] if len(material.envs) > 1 else [])]
    seed = run.settings.seed
    return ", ".join([*parts, f"seed {seed}" if seed is not None else run.name])


def scored_runs(material: Material) -> list[scored.Run]:
    """Return the runs that have an evaluation, as ``gdi.scores`` compares them."""
    return [
        scored.Run(
            agent=group.agent,
            game=group.env,
            seed=run.settings.seed or 0,
            training_steps=run.settings.steps or run.steps,
            steps=series(run.evaluations, "steps"),
            scores=series(run.evaluations, "mean"),
            seconds=clock_series(run.evaluations, "seconds"),
        )
        for group in material.groups
        for run in group.runs
        if run.evaluations
    ]


def cell_of(found: scored.Estimate) -> Cell:
    """Return an estimate as a cell of a table."""
    if np.isnan(found.value):
        return None
    return Estimate(found.value, found.low, found.high) if found.has_interval else found.value


def thin(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int_]]:
    """Return at most ``most`` evenly spaced places of ``count``, the last one included."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))
