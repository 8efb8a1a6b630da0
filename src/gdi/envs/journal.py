"""A journal of an environment's steps, with which the newest ones can be taken back.

A fault may come in the middle of a window. For an exact resume, the environment must return to the window's start.
Saving it at every window would cost too much. Its state is known at every reset and checkpoint, and replaying the
actions since then leads to any later step.
"""

from __future__ import annotations

from gdi.envs.base import Beside, StepResult, VectorEnv, newest_faults
from gdi.errors import EnvironmentFaultError, Fault
from gdi.types import Array, State

MAX_STEPS = 10_000  # a longer journal starts again from a new state


class Journal:
    """A ``VectorEnv`` whose newest steps can be taken back if it can be saved."""

    def __init__(self, env: VectorEnv) -> None:
        self._env = env
        self.spec, self.num_envs = env.spec, env.num_envs
        self._base: State | None = None  # the state before the actions; None if the environment cannot be saved
        self._actions: list[Array] = []
        self._lost = False

    def reset(self, seed: int) -> Array:
        obs = self._env.reset(seed)
        self._lost = False
        self._begin(self._env.state_dict())
        return obs

    def _begin(self, base: State | None) -> None:
        self._base, self._actions = base, []

    def step(self, action: Array) -> StepResult:
        result = self._env.step(action)
        if self._base is not None:
            self._actions.append(action)
        return result

    @property
    def beside(self) -> Beside:
        return self._env.beside

    @property
    def faults(self) -> tuple[Fault, ...]:
        return newest_faults(self._env)

    def mark(self) -> int | None:
        """Return the present step for ``rewind``, or None if the environment cannot be saved."""
        if len(self._actions) > MAX_STEPS:
            self._begin(self._env.state_dict())
        return None if self._base is None else len(self._actions)

    def rewind(self, mark: int) -> Array | None:
        """Take back all steps since the mark, and return the observations there.

        Return None if the environment fails again. It can then only be reset.
        """
        assert self._base is not None
        actions = self._actions[:mark]
        try:
            obs = self._env.load_state_dict(self._base)
            for action in actions:
                obs = self._env.step(action).obs
        except EnvironmentFaultError:
            self._begin(None)
            self._lost = True
            return None
        self._actions = actions
        return obs

    def state_dict(self) -> State | None:
        if self._lost:
            return None
        self._begin(self._env.state_dict())
        return self._base

    def load_state_dict(self, state: State) -> Array:
        self._begin(state)
        return self._env.load_state_dict(state)

    def close(self) -> None:
        self._env.close()
