"""One copy of an environment on a screen, for videos and windows: pictures in color, and what the agent receives.

Atari has its own screen, because its training environment shows neither colors nor skipped frames. Every other
environment that can be drawn (``Drawable``) is on an ``EnvScreen``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gdi.config import EnvConfig
from gdi.envs.base import Beside, Drawable, VectorEnv, nothing_beside
from gdi.envs.guard import Guard
from gdi.envs.names import is_atari
from gdi.envs.registry import make_unguarded
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
    beside: Beside = nothing_beside(1)


class Screen(Protocol):
    """One copy of an environment with pictures. Call ``reset`` before every episode."""

    image_shape: tuple[int, int, int]
    frames_per_second: int
    num_actions: int

    def reset(self) -> ScreenStep:
        """Start an episode and return its first frame."""
        ...

    def step(self, action: int) -> ScreenStep:
        """Play one step; ``action`` counts from 0."""
        ...

    def close(self) -> None: ...


class EnvScreen:
    """One copy of an environment that can be drawn."""

    def __init__(self, env: VectorEnv, drawable: Drawable, seed: int) -> None:
        """Reset the environment, because many environments cannot be drawn before."""
        self._env, self._drawable = env, drawable
        self.frames_per_second = drawable.frames_per_second
        self.num_actions = env.spec.num_actions
        self._first: Array | None = env.reset(seed)[0]
        height, width, _ = drawable.draw(0).shape
        self.image_shape = (height, width, 3)

    def reset(self) -> ScreenStep:
        if self._first is None:
            # The episode has ended, so this step ignores its action and starts the next episode.
            self._first = self._env.step(np.zeros(1, np.int64)).obs[0]
        obs, self._first = self._first, None
        return ScreenStep(obs, 0.0, False, False, [ScreenFrame(self._drawable.draw(0), 0.0)], self._env.beside)

    def step(self, action: int) -> ScreenStep:
        step = self._env.step(np.array([action]))
        reward = float(step.reward[0])
        frame = ScreenFrame(self._drawable.draw(0), reward)
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        return ScreenStep(step.obs[0], reward, terminated, truncated, [frame], self._env.beside)

    def close(self) -> None:
        self._env.close()


def make_screen(config: EnvConfig, seed: int) -> Screen:
    """Put one copy of the environment on a screen. All its randomness comes from the seed.

    Raise UserError if the environment cannot be drawn.
    """
    if is_atari(config.id):
        from gdi.envs.atari_screen import seeded_screen
        from gdi.envs.protocols import protocol_of

        return seeded_screen(config.id, protocol_of(config), seed, config.max_episode_steps)
    env = make_unguarded(config, 1, draws=True)
    if not isinstance(env, Drawable):
        env.close()
        raise UserError(f"{config.id} cannot be drawn: choose an environment with the render mode rgb_array.")
    try:
        return EnvScreen(Guard(env, config), env, seed)
    except BaseException:
        env.close()
        raise
