"""Vector environments of others: when they reset, checked on their first episodes, and the next-step mode for all.

In the next-step mode, the step after an episode's last one ignores its action and returns the first observation of the
next episode. In the same-step mode, the last step itself returns it, with the final observation in ``info``. Such an
environment cannot wait. What it plays while we look at the final observation is therefore lost for training: each
episode's first step, whose action was chosen without a look. Its reward still counts in the return.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from gdi.errors import UserError
from gdi.types import Array

NEXT_STEP, SAME_STEP = "NextStep", "SameStep"
FINAL = ("final_obs", "final_observation")
# Resets that are checked.
CHECKED_RESETS = 100


class NextStep:
    """A vector environment of others in the next-step mode."""

    def __init__(self, env_id: str, env: Any) -> None:
        self._id, self._env = env_id, env
        missing = [name for name in ("num_envs", "reset", "step") if not hasattr(env, name)]
        if missing:
            raise UserError(f"{env_id} made a {type(env).__name__}, which has no {missing[0]}: it is no environment.")
        self.num_envs = int(env.num_envs)
        self.single_observation_space = getattr(env, "single_observation_space", env.observation_space)
        self.single_action_space = getattr(env, "single_action_space", env.action_space)
        mode = (getattr(env, "metadata", None) or {}).get("autoreset_mode")
        self.mode: str | None = getattr(mode, "value", mode)  # None: the first end of an episode shows it
        if self.mode not in (None, NEXT_STEP, SAME_STEP):
            raise UserError(
                f"{env_id} has the autoreset mode {self.mode}: make it with AutoresetMode.NEXT_STEP, or SAME_STEP."
            )
        self._resets = np.zeros(self.num_envs, bool)  # the last step ended their episodes
        self._unchecked = CHECKED_RESETS

    def reset(self, *, seed: list[int]) -> tuple[Any, dict[str, Any]]:
        takes_seed = "seed" in inspect.signature(self._env.reset).parameters
        observation, info = self._env.reset(seed=seed[0] >> 1) if takes_seed else self._env.reset()
        self._resets = np.zeros(self.num_envs, bool)
        return copied(observation), info

    def step(self, action: Array) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._env.step(action)
        reward, terminated, truncated = (np.array(x) for x in (reward, terminated, truncated))
        done, resets, observation = terminated | truncated, self._resets, copied(observation)
        if self.mode is None and (done & ~resets).any():
            self.mode = SAME_STEP if any(name in info for name in FINAL) else NEXT_STEP
        if self.mode == SAME_STEP:
            reward[resets & done] = 0  # a whole episode passed unseen, and is dropped
            terminated, truncated = terminated & ~resets, truncated & ~resets
            self._show_final(observation, info, terminated | truncated)
        elif self._unchecked > 0:
            self._check(resets, reward, done)
        self._resets = terminated | truncated
        return observation, reward, terminated, truncated, info

    def _check(self, resets: Array, reward: Array, done: Array) -> None:
        """Raise UserError if a step that must be a reset was played."""
        self._unchecked -= int(resets.sum())
        if (resets & (done | (reward != 0))).any():
            raise UserError(
                f"{self._id} plays the step after an episode's end, and its info has no final_obs: make it with "
                "AutoresetMode.NEXT_STEP, or SAME_STEP."
            )

    def _show_final(self, observation: Any, info: dict[str, Any], done: Array) -> None:
        """Put the final observations in the place of the first ones of the next episodes."""
        if not done.any():
            return
        final = next((info[name] for name in FINAL if name in info), None)
        if final is None:
            raise UserError(f"{self._id} has the autoreset mode {SAME_STEP}, but its info has no final_obs: fix it.")
        for i in np.flatnonzero(done):
            put(observation, int(i), element(final, int(i)))

    def close(self) -> None:
        self._env.close()


def copied(observation: Any) -> Any:
    """Return a copy of a tree of arrays, which the environment may write again."""
    if isinstance(observation, dict):
        return {name: copied(value) for name, value in observation.items()}
    if isinstance(observation, tuple):
        return tuple(copied(value) for value in observation)
    return np.array(observation)


def element(batch: Any, i: int) -> Any:
    """Return observation i of a batch, which is a tree of arrays or an array of trees."""
    if isinstance(batch, dict):
        return {name: element(value, i) for name, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(element(value, i) for value in batch)
    return batch[i]


def put(batch: Any, i: int, value: Any) -> None:
    """Write observation i of a batch."""
    if isinstance(batch, dict):
        for name, part in batch.items():
            put(part, i, value[name])
    elif isinstance(batch, tuple):
        for part, one in zip(batch, value, strict=True):
            put(part, i, one)
    else:
        batch[i] = value
