"""The interface of all environments: N copies, discrete actions, and a reset on the next step."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gdi.errors import Fault
from gdi.types import Array, State


class Beside(NamedTuple):
    """What belongs to N observations beside the observation itself; the width is 0 where there is none."""

    vector: Array  # [N, V] float32: the vectors beside an image
    action_mask: Array  # [N, A] bool: the valid actions


def nothing_beside(num_envs: int) -> Beside:
    """Return what environments have that are observed as one array and allow every action."""
    return Beside(np.zeros((num_envs, 0), np.float32), np.zeros((num_envs, 0), bool))


class Reader(Protocol):
    """The conversion between one environment's own observations and actions and those of a network."""

    def observe(self, observation: Any, action_mask: Any) -> tuple[Array, Beside]:
        """Return one observation as a batch of one; ``action_mask`` is that of ``info``, or None."""
        ...

    def action(self, number: int) -> Any:
        """Return the environment's own action of this number."""
        ...


class EnvSpec(NamedTuple):
    """The properties of an environment that a network needs."""

    observation_shape: tuple[int, ...]  # as the network sees it: [n] for vectors, [height, width, channel] for images
    observation_dtype: np.dtype[np.generic]
    num_actions: int
    frames_per_step: int = 1  # emulator frames that one step advances
    frame_stack: int = 1  # if above 1, a step returns one frame, [height, width], and so many become channels
    vector_width: int = 0  # numbers beside an image
    has_mask: bool = False  # only some actions are valid at each step
    notes: tuple[str, ...] = ()  # how observations and actions were converted, for the user
    reader: Reader | None = None  # None: the environment's own observations and actions are those of the network

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

    @property
    def beside(self) -> Beside:
        """What belongs to the newest observations."""
        ...

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


def newest_faults(env: VectorEnv) -> tuple[Fault, ...]:
    """Return the faults of copies that were replaced in the newest step.

    For such a copy the step ignored its action. It returned the first observation of the next episode and reward 0.
    Environments that replace no copies need no attribute ``faults``.
    """
    faults: tuple[Fault, ...] = getattr(env, "faults", ())
    return faults


def replaced(faults: tuple[Fault, ...]) -> list[int]:
    """Return the numbers of the copies that were replaced."""
    return [fault.copy for fault in faults if fault.copy is not None]


@runtime_checkable
class Drawable(Protocol):
    """A ``VectorEnv`` whose copies can be drawn in color, for videos."""

    frames_per_second: int  # one frame per step

    def draw(self, i: int) -> Array:
        """Return a picture of copy ``i`` as it is now, [height, width, 3] bytes."""
        ...
