"""A vector environment whose valid actions differ from state to state, and which counts the invalid ones it gets."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv

ACTIONS = 5
LENGTH = 7


class Masked(VectorEnv[Any, Any, Any]):
    """In state s the actions (s + i) mod 5 are valid for i = 0, 1. A valid odd action pays 1."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    invalid = 0  # over all instances
    steps = 0

    def __init__(self, num_envs: int, in_observation: bool = False) -> None:
        self.num_envs = num_envs
        self._in_observation = in_observation
        self.single_action_space = Discrete(ACTIONS)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        plain: Any = Box(0, 1, (LENGTH + 1,), np.float32)
        self.single_observation_space = (
            Dict({"state": plain, "action_mask": Box(0, 1, (ACTIONS,), np.int8)}) if in_observation else plain
        )
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self._clock = np.zeros(num_envs, np.int64)

    def _told(self) -> tuple[Any, dict[str, Any]]:
        state = np.eye(LENGTH + 1, dtype=np.float32)[self._clock]
        mask = np.zeros((self.num_envs, ACTIONS), np.int8)
        for i in (0, 1):
            mask[np.arange(self.num_envs), (self._clock + i) % ACTIONS] = 1
        mask[self._clock == LENGTH] = 0  # no action is valid in a terminal state
        self._mask = mask
        return ({"state": state, "action_mask": mask}, {}) if self._in_observation else (state, {"action_mask": mask})

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._clock[:] = 0
        return self._told()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        resets = self._clock == LENGTH
        valid = self._mask[np.arange(self.num_envs), actions] == 1
        Masked.invalid += int((~valid & ~resets).sum())
        Masked.steps += int((~resets).sum())
        reward = np.where(resets, 0.0, valid * (actions % 2))
        self._clock = np.where(resets, 0, self._clock + 1)
        done = self._clock == LENGTH
        return (lambda told: (told[0], reward, done, np.zeros_like(done), told[1]))(self._told())
