"""Misbehaving environments for processes that import them by name: ``ray_envs:Hangs-v0``.

Some misbehave only once. They remember it in a file, whose path is in the environment variable RAY_ENVS_FLAG.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class MisbehavingEnv(gymnasium.Env[Any, int]):
    """An environment with episodes of ten steps, where action 1 is worth a point; subclasses misbehave."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self.misbehave()
        return np.full(3, self._steps / 10, np.float32), float(action), self._steps == 10, False, {}

    def misbehave(self) -> None: ...


def hang_once(flag: Path) -> None:
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    time.sleep(10_000)


class Hangs(MisbehavingEnv):
    """An environment of which one copy sleeps forever, once."""

    def misbehave(self) -> None:
        hang_once(Path(os.environ["RAY_ENVS_FLAG"]))


class HangsAtStart(Hangs):
    """An environment that also sleeps forever once while it is created."""

    def __init__(self) -> None:
        hang_once(Path(os.environ["RAY_ENVS_FLAG"] + ".start"))


class Fails(MisbehavingEnv):
    """An environment that raises at the fifth step of every episode."""

    def misbehave(self) -> None:
        if self._steps == 5:
            raise ValueError("the lever broke")


class NotFinite(MisbehavingEnv):
    """An environment whose rewards are NaN from its fifth step on."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if self._steps >= 5 else reward, *rest


ENVS = {"Plain": MisbehavingEnv, "Hangs": Hangs, "HangsAtStart": HangsAtStart, "Fails": Fails, "NotFinite": NotFinite}
for name, env in ENVS.items():
    gymnasium.register(f"{name}-v0", env)
