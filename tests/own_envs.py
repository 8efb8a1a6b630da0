"""Environments as a user writes them: of every space, in a file of their own."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

IMAGE = spaces.Box(0, 255, (12, 10, 3), np.uint8)
SPACES: dict[str, gymnasium.Space[Any]] = {
    "vector": spaces.Box(-1, 1, (3,), np.float64),
    "matrix": spaces.Box(-1, 1, (2, 3), np.float32),
    "image": IMAGE,
    "gray": spaces.Box(0, 255, (12, 10), np.uint8),
    "first": spaces.Box(0, 255, (3, 12, 10), np.uint8),
    "float": spaces.Box(0, 1, (3, 12, 10), np.float32),
    "stack": spaces.Box(0, 255, (4, 12, 10, 3), np.uint8),
    "discrete": spaces.Discrete(4, start=2),
    "binary": spaces.MultiBinary((2, 2)),
    "multi": spaces.MultiDiscrete([2, 3], start=[1, 0]),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32))),
    "dict": spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Dict({"deep": spaces.Box(-1, 1, (2,), np.float32)})}),
    "mixed": spaces.Dict({"view": IMAGE, "speed": spaces.Box(-1, 1, (2,), np.float32), "said": spaces.Text(5)}),
    "images": spaces.Dict({"left": IMAGE, "right": spaces.Box(0, 255, (12, 10, 1), np.uint8)}),
    "text": spaces.Text(5),
    "sequence": spaces.Sequence(spaces.Discrete(2)),
    "sizes": spaces.Dict({"left": IMAGE, "right": spaces.Box(0, 255, (6, 6, 3), np.uint8)}),
    "empty": spaces.Box(-1, 1, (0,), np.float32),
    "huge": spaces.Discrete(10**6),
}


class Own(gymnasium.Env[Any, Any]):
    """Episodes of ``length`` steps with random observations of a space; the reward is the sum of the action."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, observe: str = "vector", act: Any = None, length: int = 5) -> None:
        self.observation_space = copy.deepcopy(SPACES[observe])  # each copy draws its own numbers
        self.action_space = spaces.Discrete(3) if act is None else act
        self._length, self._clock = length, 0

    def _observe(self) -> Any:
        return self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._clock = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._clock += 1
        return self._observe(), float(np.sum(action)), self._clock >= self._length, False, {}


def make_own(observe: str = "vector") -> Own:
    return Own(observe)


class Shift(gymnasium.RewardWrapper[Any, Any]):
    """A wrapper that adds 100 to every reward."""

    def reward(self, reward: Any) -> float:
        return float(reward) + 100.0


not_callable = 5
gymnasium.register("own_envs/Registered-v0", Own, max_episode_steps=3)
