"""Any Gymnasium environment with discrete actions and array observations, by Gymnasium's vector API."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from gdi.envs import minatar
from gdi.envs.base import EnvSpec, StepResult
from gdi.errors import UserError, did_you_mean, install_hint
from gdi.scores.games import GAMES
from gdi.types import Array, State

PICTURES = "rgb_array"  # Gymnasium's render mode
DEFAULT_FRAMES_PER_SECOND = 30


def _make(env_id: str, num_envs: int, max_episode_steps: int, draws: bool = False) -> Any:
    options: dict[str, Any] = {"max_episode_steps": max_episode_steps} if max_episode_steps else {}
    if draws:
        options["render_mode"] = PICTURES
    module = env_id.partition(":")[0]
    if ":" in env_id:
        if not all(name.isidentifier() for name in module.split(".")):
            raise UserError(
                f"environment {env_id!r}: {module!r} is not a valid module name: write your own environment as "
                "module:Name-v0."
            )
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise UserError(
                f"environment {env_id!r}: there is no module {error.name!r}: install it, or add its folder to "
                "PYTHONPATH."
            ) from None
        except (ImportError, SyntaxError) as error:
            raise UserError(f"environment {env_id!r}: {module} cannot be imported: {_one_line(error)}.") from None
    try:
        return gymnasium.make_vec(
            env_id,
            num_envs=num_envs,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.NEXT_STEP},
            **options,
        )
    except (gymnasium.error.NameNotFound, gymnasium.error.NamespaceNotFound, gymnasium.error.VersionNotFound):
        known = [*gymnasium.registry, *minatar.IDS, *GAMES]
        raise UserError(
            f"unknown environment {env_id!r}.{did_you_mean(env_id, known)} Write your own environment as "
            "module:Name-v0."
        ) from None
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, OSError) as error:
        # The constructor of the environment may raise these, for example if a package is missing.
        raise UserError(f"cannot make environment {env_id!r}: {type(error).__name__}: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def observation_spec(env_id: str, space: gymnasium.Space[Any]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return the shape and dtype that the network receives.

    Vectors become float32. Images, which have three axes, or two axes of bytes, keep their shape.
    """
    if not isinstance(space, gymnasium.spaces.Box):
        raise UserError(
            f"{env_id} has {type(space).__name__} observations, but only Box vectors and images are supported: wrap "
            "it, for example with gymnasium.wrappers.FlattenObservation."
        )
    shape = tuple(int(n) for n in space.shape)
    if not shape or math.prod(shape) == 0:
        raise UserError(f"{env_id} has empty observations of shape {shape}: wrap it, or fix its observation space.")
    if len(shape) == 2 and space.dtype == np.uint8:
        shape = (*shape, 1)  # a gray image
    if len(shape) != 3:
        return (math.prod(shape),), np.dtype(np.float32)
    if 2 * shape[0] < min(shape[1:]):
        raise UserError(
            f"{env_id} has images of shape {shape}, channel first, but only (height, width, channel) is supported: "
            "wrap it with gymnasium.wrappers.TransformObservation."
        )
    is_bytes = space.dtype in (np.uint8, np.bool_)
    return shape, np.dtype(space.dtype if is_bytes else np.float32)


class GymnasiumEnv:
    """N copies in Gymnasium's SyncVectorEnv, with its next-step reset mode."""

    def __init__(self, env_id: str, num_envs: int, max_episode_steps: int = 0, *, draws: bool = False) -> None:
        """``draws``: make copies that can be drawn, or raise UserError."""
        self._env = _make(env_id, num_envs, max_episode_steps)
        self._id = env_id
        if draws:
            self._check_pictures()
            self._env = _make(env_id, num_envs, max_episode_steps, draws=True)
        self.frames_per_second = int(self._env.metadata.get("render_fps") or DEFAULT_FRAMES_PER_SECOND)
        self.num_envs = num_envs
        action_space = self._env.single_action_space
        if not isinstance(action_space, gymnasium.spaces.Discrete):
            self._env.close()
            raise UserError(
                f"{env_id} has {type(action_space).__name__} actions, but only Discrete actions are supported: use "
                "another environment, or wrap it."
            )
        try:
            shape, dtype = observation_spec(env_id, self._env.single_observation_space)
        except UserError:
            self._env.close()
            raise
        self.spec = EnvSpec(shape, dtype, int(action_space.n), first_action=int(action_space.start))

    def _check_pictures(self) -> None:
        """Close the environment, and raise UserError if it has no pictures."""
        self._env.close()
        modes = self._env.metadata.get("render_modes") or ()
        if PICTURES not in modes:
            has = f"only {', '.join(modes)}" if modes else "none"
            raise UserError(
                f"{self._id} cannot be drawn: it needs the render mode {PICTURES} and has {has}. Add it to the "
                "environment's metadata and render()."
            )

    def draw(self, i: int) -> Array:
        try:
            picture = np.asarray(self._env.envs[i].render())
        except gymnasium.error.DependencyNotInstalled as error:
            raise UserError(f"{self._id} cannot be drawn: {_one_line(error)}: {install_hint('video')}.") from None
        if picture.ndim != 3 or picture.shape[-1] != 3 or picture.dtype != np.uint8:
            raise UserError(
                f"{self._id} cannot be drawn: render() returned {picture.dtype} of shape {picture.shape}, not bytes "
                "of shape (height, width, 3)."
            )
        return picture

    def _obs(self, obs: Array) -> Array:
        self._check_finite("an observation", obs)
        # SyncVectorEnv returns a copy of its buffer, so a view of it does not change later.
        return obs.reshape(self.num_envs, *self.spec.observation_shape).astype(self.spec.observation_dtype, copy=False)

    def _check_finite(self, what: str, values: Array) -> None:
        # One NaN would stay in the controller's estimates and make them useless for the rest of the run.
        if not np.isfinite(values).all():
            raise UserError(
                f"environment {self._id!r} returned {what} that is NaN or infinite: fix the environment, or wrap it."
            )

    def reset(self, seed: int) -> Array:
        # Each copy gets a child seed, because with Gymnasium's rule (seed + i), runs 1 and 2 would share all but one.
        seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(self.num_envs)]
        obs, _ = self._env.reset(seed=seeds)
        return self._obs(obs)

    def step(self, action: Array) -> StepResult:
        obs, reward, terminated, truncated, _ = self._env.step(action + self.spec.first_action)
        self._check_finite("a reward", reward)
        # Some environments set both flags at once. Termination takes precedence.
        return StepResult(self._obs(obs), reward.astype(np.float32), terminated, truncated & ~terminated)

    def state_dict(self) -> State | None:
        return None  # Gymnasium cannot save an environment

    def load_state_dict(self, state: State) -> Array:
        raise ValueError("a Gymnasium environment cannot be restored: reset it instead.")

    def close(self) -> None:
        self._env.close()
