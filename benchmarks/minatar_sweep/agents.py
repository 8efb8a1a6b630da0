"""The agents of the benchmark, by the names of its CSV files, and the jobs of its plan that they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gdi.config import Config
from gdi.envs.minatar import GAMES as MINATAR
from gdi.sweep.jobs import Job, all_jobs, config_of
from gdi.sweep.peer_settings import is_peer
from gdi.sweep.plan import read_plan

PLAN = Path(__file__).parents[1] / "minatar.toml"
GAMES = tuple(MINATAR)


@dataclass(frozen=True)
class Agent:
    """An agent: its name in the CSV files, its table label, its number of seeds, and its name in the plan."""

    name: str
    label: str
    seeds: int
    planned: str

    @property
    def is_peer(self) -> bool:
        return is_peer(self.planned)


# The table labels are those of the paper's ablation settings (tab:ablation_setting).
AGENTS = {
    agent.name: agent
    for agent in (
        Agent("gdi-i3", "GDI-I3", 5, "gdi-i3"),
        Agent("gdi-i3-q10", "GDI-I3, Q-loss weight 10", 5, "gdi-i3+q10"),
        Agent("gdi-h3", "GDI-H3", 5, "gdi-h3"),
        Agent("fixed", "Fix Selection", 3, "fixed"),
        Agent("fixed-unscaled", "Fix Selection, reward factor 1", 3, "fixed+unscaled"),
        Agent("random", "Random Selection", 3, "random"),
        Agent("boltzmann", "Boltzmann Selection", 3, "boltzmann"),
        Agent("epsilon-greedy", "ε-greedy Selection", 3, "epsilon-greedy"),
        Agent("ppo", "PPO (SB3)", 5, "sb3-ppo"),
        Agent("dqn", "DQN (SB3)", 3, "sb3-dqn"),
    )
}


def env_id(game: str) -> str:
    """Return the ``-v0`` id, which has all six actions."""
    return f"MinAtar/{game}-v0"


def jobs_of(agent: Agent, plan: Path = PLAN) -> list[Job]:
    """Return an agent's jobs in a plan."""
    return [job for job in all_jobs(read_plan(plan)) if job.agent == agent.planned]


def live_config(agent: Agent) -> Config:
    """Return the config of an agent's first job."""
    return config_of(jobs_of(agent)[0])
