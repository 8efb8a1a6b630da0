"""Agents as score matrices, and the published agents for comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gdi.errors import UserError, did_you_mean
from gdi.scores.data import read_csv
from gdi.scores.games import GAMES, canonical_game
from gdi.scores.reference import Array, check_reference_name, corrected

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Agent:
    """An agent's raw scores, ``[runs, 57]``, with NaN for each missing score.

    Runs are seeds. They are unpaired: run 0 of one game is unrelated to run 0 of another.
    """

    name: str
    scores: Array
    frames: float | None = None
    category: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.scores.shape[1] != len(GAMES):
            raise ValueError(f"scores must be [runs, {len(GAMES)}], got {self.scores.shape}")

    @classmethod
    def from_dict(cls, name: str, scores: Mapping[str, float | Sequence[float]], frames: float | None = None) -> Agent:
        """Create an agent from ``{"MsPacman": 1234.0}`` or ``{"MsPacman": [1234.0, 1180.0]}``.

        A list has one score per seed. All common spellings of the games work.
        """
        runs: dict[str, list[float]] = {}
        for spelling, value in scores.items():
            game = canonical_game(spelling)
            if game in runs:
                raise UserError(f"{game} is given twice, the second time as {spelling!r}.")
            runs[game] = [float(x) for x in value] if isinstance(value, Sequence) else [float(value)]
        return cls(name, score_matrix(runs), frames)

    @property
    def runs_per_game(self) -> tuple[int, ...]:
        """Return the number of runs for each of the 57 games."""
        return tuple(int(count) for count in np.isfinite(self.scores).sum(axis=0))

    @property
    def reported(self) -> Mask:
        """Return which of the 57 games have a score."""
        return np.asarray(np.isfinite(self.scores).any(axis=0))

    def restricted_to(self, keep: Mask) -> Agent:
        """Return the same agent without the scores of all other games."""
        return replace(self, scores=np.where(keep, self.scores, np.nan))


def score_matrix(runs: Mapping[str, Sequence[float]]) -> Array:
    """Return scores by game, keyed by our game names, as a ``[runs, 57]`` matrix padded with NaN."""
    height = max((len(values) for values in runs.values()), default=0)
    matrix = np.full((max(height, 1), len(GAMES)), np.nan)
    for game, values in runs.items():
        matrix[: len(values), GAMES.index(game)] = values
    return matrix


@cache
def published_agents(reference: str = "paper", ablations: bool = False) -> dict[str, Agent]:
    """Return the 13 agents of the paper's comparison by name; `ablations` adds its two ablated agents.

    The paper prints one score per game and agent, so there is one run. `reference` matters for a single cell: GDI-I3's
    fishing derby is printed rounded, and only ``printed`` keeps that.
    """
    check_reference_name(reference)
    columns = read_csv("scores.csv")
    agents: dict[str, Agent] = {}
    for row in read_csv("agents.csv"):
        if row["kind"] == "ablation" and not ablations:
            continue
        printed = np.array([np.nan if line[row["name"]] == "N/A" else float(line[row["name"]]) for line in columns])
        scores = corrected(reference, row["name"], printed)[None, :]
        agents[row["name"]] = Agent(row["label"], scores, float(row["frames"]), row["category"], row["source"])
    return agents


def choose_agents(names: str, reference: str = "paper") -> tuple[Agent, ...]:
    """Return the agents named by ``"agent57,muzero"``, ``"all"`` (the 13 published) or ``"none"``."""
    if names.strip().lower() == "none":
        return ()
    if names.strip().lower() == "all":
        return tuple(published_agents(reference).values())
    known = published_agents(reference, ablations=True)
    by_key = {re.sub(r"[^a-z0-9]", "", name): name for name in known}
    chosen: dict[str, Agent] = {}
    for name in names.split(","):
        key = re.sub(r"[^a-z0-9]", "", name.lower())
        if key not in by_key:
            hint = did_you_mean(name.strip(), known)
            raise UserError(f"unknown agent {name.strip()!r}.{hint} Choose from all, none, {', '.join(known)}.")
        chosen[by_key[key]] = known[by_key[key]]
    return tuple(chosen.values())
