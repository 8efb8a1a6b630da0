"""One copy of an environment on a screen, for videos and windows: pictures in color, and what the agent receives.

Atari has its own screen, because its training environment shows neither colors nor skipped frames. Every other
environment that can be drawn (``Drawable``) is on an ``EnvScreen``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, cast

import numpy as np

from gdi.config import EnvConfig
from gdi.envs.base import Drawable, VectorEnv
from gdi.envs.names import is_atari
from gdi.envs.registry import make_env
from gdi.errors import UserError
from gdi.types import Array


class ScreenFrame(NamedTuple):
    """One picture."""

    image: Array  # [height, width, 3] bytes, RGB
    reward: float  # points that this frame added to the score


class ScreenStep(NamedTuple):
    """One step of one environment."""

    obs: Array  # the newest frame of the observation, as the agent receives it
    reward: float
    terminated: bool
    truncated: bool
    frames: list[ScreenFrame]  # Atari has one per emulator frame played, and other environments have one per step


class Screen(Protocol):
    """One copy of an environment with pictures. Call ``reset`` before every episode."""

    image_shape: tuple[int, int, int]
    frames_per_second: int
    num_actions: int

    def reset(self) -> ScreenStep:
        """Start an episode and return its first frame."""
        ...

    def step(self, action: int) -> ScreenStep:
        """Play one step; ``action`` is the environment's own number of the action."""
        ...

    def close(self) -> None: ...


class EnvScreen:
    """One copy of a ``VectorEnv`` that can be drawn."""

    def __init__(self, env: VectorEnv, seed: int) -> None:
        """Reset the environment, because many environments cannot be drawn before."""
        self._env = env
        self._drawable = cast(Drawable, env)
        self.frames_per_second = self._drawable.frames_per_second
        self.num_actions = env.spec.num_actions
        self._first: Array | None = env.reset(seed)[0]
        height, width, _ = self._drawable.draw(0).shape
        self.image_shape = (height, width, 3)

    def reset(self) -> ScreenStep:
        if self._first is None:
            # The episode has ended, so this step ignores its action and starts the next episode.
            self._first = self._env.step(np.zeros(1, np.int64)).obs[0]
        obs, self._first = self._first, None
        return ScreenStep(obs, 0.0, False, False, [ScreenFrame(self._drawable.draw(0), 0.0)])

    def step(self, action: int) -> ScreenStep:
        step = self._env.step(np.array([action - self._env.spec.first_action]))
        reward = float(step.reward[0])
        frame = ScreenFrame(self._drawable.draw(0), reward)
        return ScreenStep(step.obs[0], reward, bool(step.terminated[0]), bool(step.truncated[0]), [frame])

    def close(self) -> None:
        self._env.close()


def make_screen(config: EnvConfig, seed: int) -> Screen:
    """Put one copy of the environment on a screen. All its randomness comes from the seed.

    Raise UserError if the environment cannot be drawn.
    """
    if is_atari(config.id):
        from gdi.envs.atari_screen import seeded_screen
        from gdi.envs.protocols import find_protocol

        return seeded_screen(config.id, find_protocol(config.protocol), seed, config.max_episode_steps)
    env = make_env(config, 1, draws=True)
    if not isinstance(env, Drawable):
        env.close()
        raise UserError(f"{config.id} cannot be drawn: choose an environment with the render mode rgb_array.")
    try:
        return EnvScreen(env, seed)
    except BaseException:
        env.close()
        raise
