"""Environments with solutions known by arithmetic, for tests and for trying out a controller.

``Toy/Counting-v0``: the observation is [episode number, step in episode, 0], and the reward is the step count. Episodes
last 5 steps + copy number. They end alternately by termination and truncation, so any off-by-one error shows up.
``Toy/Chain-v0``: the agent walks right 8 cells for reward 1, and any left step returns it to the start.
``Toy/Surface-v0``: an episode has 20 steps of two actions, and its return peaks at a known rate of action 1. The return
is thus a known surface over ε and temperature, on which a controller must find the peak.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gdi.envs.base import EnvSpec, StepResult, nothing_beside
from gdi.errors import UserError, did_you_mean
from gdi.types import Array, State


class Rules(Protocol):
    """The rules of one toy, for N copies at once."""

    features: int
    num_actions: int

    def observe(self, toy: ToyEnv) -> Array: ...

    def play(self, toy: ToyEnv, action: Array) -> tuple[Array, Array, Array]:
        """Return reward, terminated and truncated, each [N]."""
        ...


class Counting:
    features, num_actions = 3, 2

    def observe(self, toy: ToyEnv) -> Array:
        return np.stack([toy.episode, toy.clock, np.zeros_like(toy.clock)], axis=1)

    def play(self, toy: ToyEnv, action: Array) -> tuple[Array, Array, Array]:
        ends = toy.clock + 1 >= 5 + np.arange(toy.num_envs)
        return toy.clock, ends & (toy.episode % 2 == 0), ends & (toy.episode % 2 == 1)


class Chain:
    features, num_actions, length = 1, 2, 8

    def observe(self, toy: ToyEnv) -> Array:
        return toy.position[:, None]

    def play(self, toy: ToyEnv, action: Array) -> tuple[Array, Array, Array]:
        toy.position = np.where(action == 1, toy.position + 1, 0)
        at_goal = toy.position >= self.length
        return at_goal, at_goal, toy.clock + 1 >= 32


class Surface:
    """A toy that pays 1 − |rate − target| at the end, for the rate of action 1 over the 20 steps."""

    features, num_actions, target, steps = 1, 2, 0.8, 20

    def observe(self, toy: ToyEnv) -> Array:
        return np.ones((toy.num_envs, 1))

    def play(self, toy: ToyEnv, action: Array) -> tuple[Array, Array, Array]:
        toy.position = toy.position + action
        ends = toy.clock + 1 >= self.steps
        rate = toy.position / self.steps
        return np.where(ends, 1.0 - np.abs(rate - self.target), 0.0), ends, np.zeros_like(ends)


TOYS: dict[str, type[Rules]] = {"Toy/Counting-v0": Counting, "Toy/Chain-v0": Chain, "Toy/Surface-v0": Surface}


class ToyEnv:
    """N copies of one toy, each with an episode number, a clock and a position."""

    def __init__(self, rules: Rules, num_envs: int, max_episode_steps: int = 0) -> None:
        self.rules = rules
        self.num_envs = num_envs
        self.beside = nothing_beside(num_envs)
        self.max_episode_steps = max_episode_steps
        self.spec = EnvSpec((rules.features,), np.dtype(np.float32), rules.num_actions)
        self._clear()

    def _clear(self) -> None:
        self.episode = np.zeros(self.num_envs, np.int64)
        self.clock = np.zeros(self.num_envs, np.int64)
        self.position = np.zeros(self.num_envs, np.int64)
        self._reset_next = np.zeros(self.num_envs, bool)

    def reset(self, seed: int) -> Array:
        self._clear()
        return self._observe()

    def _observe(self) -> Array:
        return self.rules.observe(self).astype(np.float32)

    def step(self, action: Array) -> StepResult:
        resets = self._reset_next
        reward, terminated, truncated = self.rules.play(self, action)
        self.clock = np.where(resets, 0, self.clock + 1)
        self.episode = self.episode + resets
        self.position = np.where(resets, 0, self.position)
        if self.max_episode_steps:
            truncated = truncated | (self.clock >= self.max_episode_steps)
        terminated = terminated & ~resets
        truncated = truncated & ~resets & ~terminated
        self._reset_next = terminated | truncated
        return StepResult(self._observe(), np.where(resets, 0.0, reward).astype(np.float32), terminated, truncated)

    def state_dict(self) -> State:
        return {
            "episode": self.episode.copy(),
            "clock": self.clock.copy(),
            "position": self.position.copy(),
            "reset_next": self._reset_next.copy(),
        }

    def load_state_dict(self, state: State) -> Array:
        self.episode, self.clock = np.array(state["episode"]), np.array(state["clock"])
        self.position, self._reset_next = np.array(state["position"]), np.array(state["reset_next"])
        return self._observe()

    def close(self) -> None:
        """Do nothing, because a toy holds no resources."""


def make_toy(env_id: str, num_envs: int, max_episode_steps: int = 0) -> ToyEnv:
    if env_id not in TOYS:
        raise UserError(f"unknown environment {env_id!r}.{did_you_mean(env_id, TOYS)} Toys are {', '.join(TOYS)}.")
    return ToyEnv(TOYS[env_id](), num_envs, max_episode_steps)
