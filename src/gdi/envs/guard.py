"""Guards around environments, which turn whatever goes wrong inside into one error: EnvironmentFaultError.

``CopyGuard`` is around one copy of a Gymnasium environment. It knows which copy failed at which step, and may go on
with a fresh one. ``Guard`` is around a whole ``VectorEnv``, for all that a copy's guard cannot see.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np

from gdi.config import EnvConfig
from gdi.envs.base import Beside, StepResult, VectorEnv, newest_faults
from gdi.envs.watchdog import HangError, Watchdog
from gdi.errors import EnvironmentFaultError, Fault, UserError
from gdi.types import Array, State

FAULT = "gdi_fault"  # the key of a fault in Gymnasium's info
FLOAT32_MAX = float(np.finfo(np.float32).max)
RESULT = "step() must return observation, reward, terminated, truncated and info"


class ContractError(Exception):
    """A returned value that breaks Gymnasium's rules."""


class Restarts:
    """How many more copies may be replaced by fresh ones. All copies of one vector environment share it."""

    def __init__(self, left: int) -> None:
        self.left = left


class CopyGuard(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One copy of an environment, checked at every step and replaced by a fresh one after a fault if allowed.

    A fresh copy starts an episode. Its first observation comes with the fault under ``FAULT`` in ``info``.
    """

    def __init__(self, make: Callable[[], Any], copy: int, config: EnvConfig, restarts: Restarts) -> None:
        super().__init__(make())
        self._make, self._copy, self._id, self._restarts = make, copy, config.id, restarts
        self._watchdog = Watchdog(config.timeout_seconds) if config.timeout_seconds else None
        self._hangs = False
        self._steps = self._seed = self._times = 0
        self._shape = self.observation_space.shape  # None if it is nested

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        self._seed = self._seed if seed is None else seed
        try:
            return self._begin(seed, options)
        except Exception as error:
            fault = self._fault(error)
            if seed is not None:  # an environment that fails at its first reset is broken
                raise EnvironmentFaultError(fault) from None
            return self._restart(fault)

    def _begin(self, seed: int | None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        result = self._call(lambda: self.env.reset(seed=seed, options=options))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ContractError(f"reset() must return observation and info, and returned {_described(result)}")
        self._check(result[0])
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        try:
            result = self._call(self.env.step, action)
            if not isinstance(result, tuple) or len(result) != 5:
                raise ContractError(f"{RESULT}, and returned {_described(result)}")
            if not -FLOAT32_MAX <= result[1] <= FLOAT32_MAX:
                raise ContractError(f"step() returned the reward {result[1]}, which is NaN or infinite as float32")
            self._check(result[0])
            return result
        except Exception as error:
            observation, info = self._restart(self._fault(error))
            return observation, 0.0, False, False, info

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments) if self._watchdog is None else self._watchdog.call(function, *arguments)

    def _check(self, observation: Any) -> None:
        """Raise ContractError if the observation has a wrong shape.

        Values are checked for all copies at once (``check_finite``), unless this copy alone shall be replaced.
        """
        if getattr(observation, "shape", None) != self._shape or self._shape is None:
            problem = shape_problem(self.observation_space, observation)
            if problem is not None:
                raise ContractError(problem)
        if self._restarts.left and not _finite(observation):
            raise ContractError("the observation is NaN or infinite as float32")

    def _fault(self, error: Exception) -> Fault:
        self._hangs = isinstance(error, HangError)
        return fault_of(self._id, error, self._copy, self._steps)

    def _restart(self, fault: Fault) -> tuple[Any, dict[str, Any]]:
        """Go on with a fresh copy, or raise the fault if none is left."""
        while self._restarts.left:
            self._restarts.left -= 1
            self._times += 1
            self.close()
            try:
                self.env = self._make()
                self._hangs = False
                self._steps = 0
                # A seed that was not used before, because the old one may lead to the same fault.
                seed = int(np.random.SeedSequence([self._seed, self._times]).generate_state(1)[0])
                observation, info = self._begin(seed)
                return observation, {**info, FAULT: fault}
            except Exception as error:
                fault = self._fault(error)
        raise EnvironmentFaultError(fault) from None

    def close(self) -> None:
        if not self._hangs:  # closing would hang as well
            with suppress(Exception):  # a broken environment may fail once more
                self.env.close()
        if self._watchdog is not None:
            self._watchdog.close()


class Guard:
    """A ``VectorEnv`` whose faults are all EnvironmentFaultError."""

    def __init__(self, env: VectorEnv, config: EnvConfig) -> None:
        self.inner = env
        self.spec, self.num_envs = env.spec, env.num_envs
        self._id = config.id
        watches = config.timeout_seconds and not getattr(env, "guards_copies", False)
        self._watchdog = Watchdog(config.timeout_seconds) if watches else None
        self._hangs = False

    def reset(self, seed: int) -> Array:
        obs: Array = self._call(self.inner.reset, seed)
        return obs

    def step(self, action: Array) -> StepResult:
        result: StepResult = self._call(self.inner.step, action)
        return result

    @property
    def beside(self) -> Beside:
        return self.inner.beside

    @property
    def faults(self) -> tuple[Fault, ...]:
        return newest_faults(self.inner)

    def _call(self, function: Callable[..., Any], argument: Any) -> Any:
        try:
            return function(argument) if self._watchdog is None else self._watchdog.call(function, argument)
        except (EnvironmentFaultError, UserError):
            raise
        except Exception as error:  # the environment's code may raise anything
            self._hangs = isinstance(error, HangError)
            raise EnvironmentFaultError(fault_of(self._id, error)) from None

    def state_dict(self) -> State | None:
        return self.inner.state_dict()

    def load_state_dict(self, state: State) -> Array:
        return self.inner.load_state_dict(state)

    def close(self) -> None:
        if not self._hangs:
            self.inner.close()


def fault_of(env_id: str, error: Exception, copy: int | None = None, step: int | None = None) -> Fault:
    """Describe an error in one line, and keep its traceback."""
    said = " ".join(str(error).split())
    what = said if isinstance(error, (ContractError, HangError)) else f"{type(error).__name__}: {said}".rstrip(": ")
    if isinstance(error, (EOFError, ConnectionError)):
        what = f"a process of the environment died ({what})"
    if "values to unpack" in said:
        what = f"{what}: {RESULT}"
    trace = error.stack if isinstance(error, HangError) else "".join(traceback.format_exception(error))
    return Fault(env_id, what, trace, copy, step)


def check_finite(env_id: str, name: str, values: Array) -> None:
    """Raise EnvironmentFaultError if a value is NaN or infinite; ``values`` has one row per copy.

    One such value would stay in the controller's estimates and make them useless for the rest of the run.
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        copy = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
        raise EnvironmentFaultError(Fault(env_id, f"{name} is NaN or infinite as float32", "", copy))


def shape_problem(space: gymnasium.Space[Any], observation: Any) -> str | None:
    """Return how the shape of an observation breaks its space, or None."""
    if isinstance(space, gymnasium.spaces.Dict):
        if not isinstance(observation, dict) or set(observation) != set(space.spaces):
            return f"the observation is {_described(observation)} and must have the keys {', '.join(space.spaces)}"
        parts = [(part, observation[name]) for name, part in space.spaces.items()]
    elif isinstance(space, gymnasium.spaces.Tuple):
        if not isinstance(observation, tuple) or len(observation) != len(space.spaces):
            return f"the observation is {_described(observation)} and must be a tuple of {len(space.spaces)}"
        parts = list(zip(space.spaces, observation, strict=True))
    elif space.shape is None or np.shape(observation) == space.shape:
        return None
    else:
        return f"the observation has the shape {np.shape(observation)} and must have {space.shape}"
    return next(filter(None, (shape_problem(part, value) for part, value in parts)), None)


def _finite(observation: Any) -> bool:
    if isinstance(observation, dict):
        return all(map(_finite, observation.values()))
    if isinstance(observation, tuple):
        return all(map(_finite, observation))
    if isinstance(observation, (int, str)):
        return True
    values = np.asarray(observation)
    if values.dtype.kind != "f":
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(values.astype(np.float32)).all())


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"{type(value).__name__}"
