"""The agents: the paper's agents and ablations as gdi presets, and Stable-Baselines3's PPO and DQN."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gdi.config import Config
from gdi.envs.minatar import GAMES as MINATAR
from gdi.presets import make_config

GAMES = tuple(MINATAR)
STEPS = 1_000_000
EPISODES = 32
EVALUATE_EVERY_STEPS = 100_000


@dataclass(frozen=True)
class Agent:
    """An agent: its name for the CSV file and the command line, its table label and its number of seeds."""

    name: str
    label: str
    seeds: int
    preset: str = ""
    """The gdi preset; a peer has none."""
    reward_scale: float = 0.0
    """The factor on the shaped reward; 0 keeps that of the scale."""

    @property
    def is_peer(self) -> bool:
        return not self.preset


# The table labels are those of the paper's ablation settings (tab:ablation_setting).
AGENTS = {
    agent.name: agent
    for agent in (
        Agent("gdi-i3", "GDI-I3", 5, "gdi-i3"),
        Agent("gdi-h3", "GDI-H3", 5, "gdi-h3"),
        Agent("fixed", "Fix Selection", 3, "fixed"),
        # Fixed Selection is Softmax(A) at temperature 1, so the scale of A alone determines how greedy it is. With the
        # scale's reward factor of 0.15 it is nearly uniform. With the paper's factor of 1 it can learn.
        Agent("fixed-unscaled", "Fix Selection, reward factor 1", 3, "fixed", reward_scale=1.0),
        Agent("random", "Random Selection", 3, "random"),
        Agent("boltzmann", "Boltzmann Selection", 3, "boltzmann"),
        Agent("epsilon-greedy", "ε-greedy Selection", 3, "epsilon-greedy"),
        Agent("ppo", "PPO (SB3)", 5),
        Agent("dqn", "DQN (SB3)", 3),
    )
}


def env_id(game: str) -> str:
    """Return the ``-v0`` id.

    It has all six actions, and MinAtar's default sticky actions and difficulty ramping.
    """
    return f"MinAtar/{game}-v0"


def evaluate_every_steps(steps: int) -> int:
    """Return 100k steps, or less, so that a short run also has at least four evaluations."""
    return min(EVALUATE_EVERY_STEPS, max(1, steps // 4))


def gdi_config(agent: Agent, game: str, seed: int, steps: int) -> Config:
    """Return the preset at scale ``minatar`` on one CPU thread, because the cores serve parallel runs."""
    config = make_config(agent.preset, env_id(game), scale="minatar", steps=steps, seed=seed)
    learner = config.learner
    if agent.reward_scale:
        learner = replace(learner, reward_scales=(agent.reward_scale,) * config.network.families)
    return replace(
        config,
        learner=learner,
        evaluation=replace(config.evaluation, every_steps=evaluate_every_steps(steps), episodes=EPISODES),
        # One old checkpoint is enough for a resume, and a sweep stores a hundred runs.
        run=replace(config.run, threads=1, device="cpu", keep_checkpoints=1, states_per_stage=0),
    )
