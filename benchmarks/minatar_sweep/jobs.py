"""A job: one agent trained on one game with one seed, its folder, and its settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.minatar_sweep.agents import AGENTS, Agent, gdi_config
from benchmarks.minatar_sweep.peer_settings import peer_settings
from gdi.config import config_to_json

CONFIG, EVALUATIONS, LAMBDA = "config.json", "evaluations.csv", "lambda.csv"
Settings = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run of a sweep; ``str`` is what the screen shows."""

    agent: Agent
    game: str
    seed: int
    steps: int

    def __str__(self) -> str:
        return f"{self.agent.name} {self.game} seed {self.seed}"

    def folder(self, runs: Path) -> Path:
        return runs / self.agent.name / f"{self.game}-seed{self.seed}"

    def settings(self) -> Settings:
        """Return everything that the result depends on, as in the run folder's config.json."""
        if self.agent.is_peer:
            return peer_settings(self.agent.name, self.game, self.seed, self.steps)
        settings: Settings = json.loads(config_to_json(gdi_config(self.agent, self.game, self.seed, self.steps)))
        return settings


def all_jobs(agents: Iterable[str], games: Sequence[str], seeds: Sequence[int] | None, steps: int) -> list[Job]:
    """Return the jobs seed by seed, then game by game, so that an incomplete sweep compares all agents.

    Without ``seeds`` every agent has its own number of seeds, 0, 1, ...
    """
    chosen = [AGENTS[name] for name in agents]
    own = {agent.name: range(agent.seeds) if seeds is None else seeds for agent in chosen}
    every_seed = sorted({seed for of_agent in own.values() for seed in of_agent})
    return [
        Job(agent, game, seed, steps)
        for seed in every_seed
        for game in games
        for agent in chosen
        if seed in own[agent.name]
    ]


def shared_settings(settings: Settings) -> Settings:
    """Return the settings without game and seed, which all runs of an agent share."""
    env = {name: value for name, value in settings["env"].items() if name != "id"}
    return {**{name: value for name, value in settings.items() if name != "seed"}, "env": env}


def first_difference(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> tuple[str, Any, Any] | None:
    """Return (dotted name, old value, new value) of the first setting that differs.

    Only settings that both have are compared, so a gdi with one more setting still accepts older results.
    """
    for name, value in new.items():
        if name not in old:
            continue
        if isinstance(value, dict) and isinstance(old[name], dict):
            if found := first_difference(old[name], value, f"{path}{name}."):
                return found
        elif old[name] != value:
            return f"{path}{name}", old[name], value
    return None
