"""The protocol every environment is brought to: N copies, discrete actions, next-step reset."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gdi.types import Array, State


class EnvSpec(NamedTuple):
    """What a network must know of an environment."""

    observation_shape: tuple[int, ...]  # as the network sees it: [n] for vectors, [height, width, channel] for images
    observation_dtype: np.dtype[np.generic]
    num_actions: int
    frames_per_step: int = 1  # emulator frames that one step advances
    first_action: int = 0  # the environment's own name of action 0; a VectorEnv counts from 0
    frame_stack: int = 1  # above 1: a step gives one frame, [height, width], and this many are stacked as channels

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of what one step gives, and of what is stored."""
        return self.observation_shape if self.frame_stack == 1 else self.observation_shape[:-1]


class StepResult(NamedTuple):
    """One step of N environments."""

    obs: Array  # [N, *frame]
    reward: Array  # [N] float32
    terminated: Array  # [N] bool
    truncated: Array  # [N] bool


class VectorEnv(Protocol):
    """N environments that reset on the step after an episode's last one.

    An environment that ended at step t answers step t + 1 by ignoring its action and returning the first observation of
    the next episode, with reward 0. Arrays that were returned are never written again.
    """

    spec: EnvSpec
    num_envs: int

    def reset(self, seed: int) -> Array:
        """Start all environments afresh from the seed; returns the first observations, [N, *frame]."""
        ...

    def step(self, action: Array) -> StepResult:
        """action [N] int64."""
        ...

    def state_dict(self) -> State | None:
        """Everything needed to continue exactly here, or None if the environment cannot tell."""
        ...

    def load_state_dict(self, state: State) -> Array:
        """Continue from ``state_dict``; returns the current observations."""
        ...

    def close(self) -> None: ...
