"""Common code for comparisons with Stable-Baselines3: an environment adapter and a silent logger."""

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
    """Give the model an empty logger.

    Otherwise Stable-Baselines3 leaves a new folder in the temporary directory at every ``learn``.
    """
    model.set_logger(Logger(None, []))


class Sb3VecEnv(VecEnv):
    """Our vector environments as Stable-Baselines3's VecEnv, with channel-first images.

    Bytes stay bytes, because SB3 scales them, and booleans become floats. Both sides of a comparison step this same
    code. For both sides a reset takes a separate step, which is not a transition. ``transitions`` counts the other
    steps.
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
        # Copy the observation. The history overwrites it at the next step, and SB3 keeps it longer.
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
