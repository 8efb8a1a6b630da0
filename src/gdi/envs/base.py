"""The interface of all environments: N copies, discrete actions, and a reset on the next step."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gdi.types import Array, State


class EnvSpec(NamedTuple):
    """The properties of an environment that a network needs."""

    observation_shape: tuple[int, ...]  # as the network sees it: [n] for vectors, [height, width, channel] for images
    observation_dtype: np.dtype[np.generic]
    num_actions: int
    frames_per_step: int = 1  # emulator frames that one step advances
    first_action: int = 0  # the environment's own number of its first action; a VectorEnv counts from 0
    frame_stack: int = 1  # if above 1, a step returns one frame, [height, width], and so many become channels

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of the observation that one step returns and that is stored."""
        return self.observation_shape if self.frame_stack == 1 else self.observation_shape[:-1]


class StepResult(NamedTuple):
    """One step of N environments."""

    obs: Array  # [N, *frame]
    reward: Array  # [N] float32
    terminated: Array  # [N] bool
    truncated: Array  # [N] bool


class VectorEnv(Protocol):
    """N environments that reset on the step after an episode's last one.

    If an episode ended at step t, step t + 1 ignores its action. It returns the first observation of the next episode
    and reward 0. Returned arrays are never written again.
    """

    spec: EnvSpec
    num_envs: int

    def reset(self, seed: int) -> Array:
        """Restart all environments from the seed. Return the first observations, [N, *frame]."""
        ...

    def step(self, action: Array) -> StepResult:
        """Play one step of all environments; ``action`` is [N] int64."""
        ...

    def state_dict(self) -> State | None:
        """Return everything needed to continue exactly here, or None if the environment cannot be saved."""
        ...

    def load_state_dict(self, state: State) -> Array:
        """Continue from ``state_dict``. Return the current observations."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Drawable(Protocol):
    """A ``VectorEnv`` whose copies can be drawn in color, for videos."""

    frames_per_second: int  # one frame per step

    def draw(self, i: int) -> Array:
        """Return a picture of copy ``i`` as it is now, [height, width, 3] bytes."""
        ...
