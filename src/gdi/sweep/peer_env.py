"""Our environments as Stable-Baselines3 knows them, and GDI's torso for its networks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from gdi.config import EnvConfig
from gdi.envs import EnvSpec, make_env
from gdi.errors import UserError
from gdi.networks import FrameHistory
from gdi.types import Array

# The network of Mnih et al. 2015 needs images of at least so many pixels per side.
SMALLEST_SIDE = 36


class Observations:
    """The conversion of our observations of N environments: stacked frames, with the channels first."""

    def __init__(self, spec: EnvSpec, num_envs: int) -> None:
        self._spec = spec
        self._history = FrameHistory(num_envs, spec.frame_shape, spec.observation_dtype, spec.frame_stack)

    def see(self, obs: Array, starts: Array) -> Array:
        """Return the observations, of which ``starts`` marks the first ones of an episode."""
        if len(self._spec.observation_shape) != 3:
            return np.array(obs, np.float32)
        seen = self._history.observe(obs, starts) if self._spec.frame_stack > 1 else obs
        return channels_first(seen)


def channels_first(obs: Array) -> Array:
    """Convert [N, H, W, channels] to [N, channels, H, W], and booleans to bytes.

    A replay memory of floats would be four times as large.
    """
    moved = np.array(obs.transpose(0, 3, 1, 2), order="C")
    return moved.view(np.uint8) if moved.dtype == np.bool_ else moved


def observation_space(spec: EnvSpec) -> spaces.Box:
    """Return the space of the converted observations; raise UserError for those that peers cannot see."""
    if spec.vector_width or spec.has_mask:
        raise UserError("peers see one array and play every action: sweep them without this environment.")
    if len(spec.observation_shape) != 3:
        return spaces.Box(-np.inf, np.inf, spec.observation_shape, np.float32)
    height, width, channels = spec.observation_shape
    if spec.observation_dtype == np.bool_:
        return spaces.Box(0, 1, (channels, height, width), np.uint8)
    if spec.observation_dtype == np.uint8:
        return spaces.Box(0, 255, (channels, height, width), np.uint8)
    return spaces.Box(-np.inf, np.inf, (channels, height, width), np.float32)


class SingleEnv(gymnasium.Env[Array, np.int64]):
    """One of our environments as a gymnasium.Env, so that Stable-Baselines3 resets and bootstraps as usual.

    Our environments reset on the step after the last one, which is not a transition. Here ``reset`` takes that step,
    and every other step is a transition.
    """

    def __init__(self, config: EnvConfig) -> None:
        self._env = make_env(config, 1)
        self._observations = Observations(self._env.spec, 1)
        self.observation_space = observation_space(self._env.spec)
        self.action_space = spaces.Discrete(self._env.spec.num_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        obs = self._env.step(np.zeros(1, np.int64)).obs if seed is None else self._env.reset(seed)
        return self._observations.see(obs, np.ones(1, bool))[0], {}

    def step(self, action: np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated = self._env.step(np.array([action]))
        seen = self._observations.see(obs, np.zeros(1, bool))[0]
        return seen, float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def close(self) -> None:
        self._env.close()


class Torso(BaseFeaturesExtractor):
    """GDI's torso ``minatar`` for Stable-Baselines3."""

    def __init__(self, space: spaces.Box, filters: int, hidden_units: int) -> None:
        super().__init__(space, hidden_units)
        channels, height, width = space.shape
        convolved = filters * (height - 2) * (width - 2)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, filters, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(convolved, hidden_units),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x)
        return features
