"""What the comparisons with Stable-Baselines3 share: our vector environments as it sees them, and no log of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv

from gdi.config import EnvConfig
from gdi.envs import make_env
from gdi.networks import FrameHistory


def silence(model: BaseAlgorithm) -> None:
    """Stable-Baselines3 leaves a new folder in the temporary directory at every ``learn``, unless a logger is given."""
    model.set_logger(Logger(None, []))


class Games(VecEnv):
    """Channel-first images: bytes stay bytes (SB3 scales them), booleans become floats.

    Both sides of a comparison step this same code. A reset takes a step of its own and is no transition, for both
    sides; ``transitions`` counts the others.
    """

    def __init__(self, config: EnvConfig) -> None:
        self.env = make_env(config)
        spec = self.env.spec
        height, width, channels = spec.observation_shape
        self._dtype = np.uint8 if spec.observation_dtype == np.uint8 else np.float32
        box = spaces.Box(0, 255 if self._dtype is np.uint8 else 1, (channels, height, width), self._dtype)
        super().__init__(config.num_envs, box, spaces.Discrete(spec.num_actions))
        self._history = FrameHistory(config.num_envs, spec.frame_shape, spec.observation_dtype, spec.frame_stack)
        self.transitions = 0
        self.resets = np.zeros(config.num_envs, bool)

    def _obs(self, obs: Any, starts: Any) -> Any:
        # A copy: what the history returns is overwritten at the next step, and SB3 keeps it longer.
        return np.array(self._history.observe(obs, starts).transpose(0, 3, 1, 2), self._dtype, order="C")

    def reset(self) -> Any:
        return self._obs(self.env.reset(0), np.ones(self.num_envs, bool))

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        obs, reward, terminated, truncated = self.env.step(self.actions)
        self.transitions += int((~self.resets).sum())
        seen = self._obs(obs, self.resets)
        self.resets = terminated | truncated
        return seen, reward, self.resets, [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        self.env.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
