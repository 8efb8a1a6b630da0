"""Any Gymnasium environment whose actions can be numbered, by Gymnasium's vector API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector import SyncVectorEnv

from gdi.config import EnvConfig
from gdi.envs.actions import Actions
from gdi.envs.autoreset import SAME_STEP, NextStep
from gdi.envs.base import Beside, EnvSpec, StepResult, nothing_beside
from gdi.envs.copies import make_copies
from gdi.envs.forms import one_line
from gdi.envs.guard import FAULT, check_finite
from gdi.envs.pictures import check_pictures, frames_per_second, picture
from gdi.envs.spaces import MASK, Observations, batch_of_one
from gdi.errors import EnvironmentFaultError, Fault, UserError
from gdi.types import Array, State


@dataclass(frozen=True)
class SpaceReader:
    """The conversion of single observations and actions, for an agent that plays outside of a vector environment."""

    env_id: str
    space: Space[Any]
    observations: Observations
    actions: Actions
    has_mask: bool

    def observe(self, observation: Any, action_mask: Any) -> tuple[Array, Beside]:
        shape = self.space.shape
        if shape is not None and np.shape(observation) != shape:
            raise UserError(
                f"an observation must have the shape {shape}, not {np.shape(observation)}: pass one observation of "
                f"{self.env_id}."
            )
        batch = batch_of_one(self.space, observation)
        obs, vector = self.observations.convert(batch)
        raw = self.observations.mask(batch)
        if raw is None and action_mask is not None:
            raw = mask_rows(np.asarray(action_mask)[None] if not isinstance(action_mask, tuple) else [action_mask])
        mask = np.ones((1, self.actions.count if self.has_mask else 0), bool)
        return obs, Beside(vector, self.actions.mask(raw) if raw is not None and self.has_mask else mask)

    def action(self, number: int) -> Any:
        own = self.actions.own(np.array([number]))[0]
        return own.item() if own.ndim == 0 else own


def mask_rows(raw: Any) -> Array:
    """Return masks as one array. A mask may also be a tuple with one array per dimension."""
    rows = np.asarray(raw) if not isinstance(raw, list) else np.empty(0, object)
    if rows.dtype == object:
        rows = np.stack([np.concatenate([np.ravel(part) for part in row]) for row in raw])
    return rows


class GymnasiumEnv:
    """N copies of an environment, or a vector environment, with Gymnasium's next-step reset mode."""

    def __init__(self, config: EnvConfig, num_envs: int, *, draws: bool = False) -> None:
        """``draws``: make copies that can be drawn, or raise UserError."""
        self._env = make_copies(config, num_envs)
        self._id = config.id
        if draws:
            check_pictures(config.id, self._env)
            self._env.close()
            self._env = make_copies(config, num_envs, draws=True)
        self.frames_per_second = frames_per_second(self._env)
        self.guards_copies = isinstance(self._env, SyncVectorEnv)
        self.num_envs = num_envs
        self.faults: tuple[Fault, ...] = ()
        try:
            space = self._env.single_observation_space
            self._observations = Observations(self._id, space)
            self._actions = Actions(self._id, self._env.single_action_space, config.action_bins)
            has_mask = self._observations.mask_width > 0 or self._tells_masks()
        except UserError:
            self._env.close()
            raise
        self._nothing = self.beside = nothing_beside(num_envs)
        self.spec = EnvSpec(
            self._observations.shape,
            self._observations.dtype,
            self._actions.count,
            vector_width=self._observations.vector_width,
            has_mask=has_mask,
            notes=(*self._observations.notes, *self._actions.notes, *(("Actions: masked",) if has_mask else ())),
            reader=SpaceReader(self._id, space, self._observations, self._actions, has_mask),
        )

    def _tells_masks(self) -> bool:
        """Return True if the environment tells in ``info`` which actions are valid."""
        try:
            _, info = self._env.reset(seed=[0] * self.num_envs)
        except EnvironmentFaultError as error:
            raise UserError(f"{error}: fix the environment.") from error
        except Exception as error:  # a vector environment may raise anything
            what = f"{type(error).__name__}: {one_line(error)}"
            raise UserError(f"environment {self._id!r} cannot be reset: {what}.") from None
        return MASK in info

    def reset(self, seed: int) -> Array:
        # Each copy gets a child seed, because with Gymnasium's rule (seed + i), runs 1 and 2 would share all but one.
        return self.reset_copies([int(s) for s in np.random.SeedSequence(seed).generate_state(self.num_envs)])

    def reset_copies(self, seeds: list[int]) -> Array:
        """Restart each copy from its own seed. Return the first observations."""
        observation, info = self._env.reset(seed=seeds)
        return self._read(observation, info, np.zeros(self.num_envs, bool))

    def step(self, action: Array) -> StepResult:
        with np.errstate(over="ignore"):  # a number that is too large for float32 becomes infinite
            observation, reward, terminated, truncated, info = self._env.step(self._actions.own(action))
            reward = reward.astype(np.float32)
        self.faults = tuple(fault for fault in info[FAULT] if fault is not None) if FAULT in info else ()
        check_finite(self._id, "the reward", reward)
        obs = self._read(observation, info, terminated)
        # Some environments set both flags at once. Termination takes precedence.
        return StepResult(obs, reward, terminated, truncated & ~terminated)

    def _read(self, observation: Any, info: dict[str, Any], terminated: Array) -> Array:
        """Return the observations, and take what belongs beside them."""
        with np.errstate(over="ignore"):
            obs, vector = self._observations.convert(observation)
        check_finite(self._id, "the observation", obs)
        if not (self.spec.vector_width or self.spec.has_mask):
            return obs
        check_finite(self._id, "the observation", vector)
        mask = self._mask(observation, info, terminated) if self.spec.has_mask else self._nothing.action_mask
        self.beside = Beside(vector, mask)
        return obs

    def draw(self, i: int) -> Array:
        return picture(self._id, self._env.envs[i])

    def _mask(self, observation: Any, info: dict[str, Any], terminated: Array) -> Array:
        """Return the valid actions, [N, actions]. Where none is told, all are valid.

        In the same-step mode, one step has two masks: that of the final observation, which is shown, and that of the
        next episode's first one, where the environment plays on. So this mode is refused.
        """
        if isinstance(self._env, NextStep) and self._env.mode == SAME_STEP:
            raise UserError(
                f"{self._id} has action masks and the autoreset mode {SAME_STEP}: make it with AutoresetMode.NEXT_STEP."
            )
        mask = np.ones((self.num_envs, self._actions.count), bool)
        raw = self._observations.mask(observation)
        raw = info.get(MASK) if raw is None else raw
        if raw is not None:
            told = np.asarray(info.get(f"_{MASK}", np.ones(self.num_envs, bool)))
            mask[told] = self._actions.mask(mask_rows(raw[told]))
        none = ~mask.any(axis=1)
        if (none & ~terminated).any():
            what = "it allows no action in a state that is not terminal: fix its action_mask."
            raise EnvironmentFaultError(Fault(self._id, what, "", int(np.flatnonzero(none & ~terminated)[0])))
        mask[none] = True  # nothing is acted or bootstrapped in a terminal state
        return mask

    def state_dict(self) -> State | None:
        return None  # Gymnasium cannot save an environment

    def load_state_dict(self, state: State) -> Array:
        raise ValueError("a Gymnasium environment cannot be restored: reset it instead.")

    def close(self) -> None:
        self._env.close()
