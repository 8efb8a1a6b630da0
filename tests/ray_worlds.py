"""Environments that misbehave, for processes that import them by name: ``ray_worlds:Hangs-v0``.

Where they misbehave only once, a file whose path is in the environment variable RAY_WORLDS_FLAG remembers it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class World(gymnasium.Env[Any, int]):
    """Episodes of ten steps; action 1 is worth a point."""

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


class Hangs(World):
    """One of all its copies sleeps for ever, once."""

    def misbehave(self) -> None:
        hang_once(Path(os.environ["RAY_WORLDS_FLAG"]))


class HangsAtStart(Hangs):
    """And one that is made after that."""

    def __init__(self) -> None:
        hang_once(Path(os.environ["RAY_WORLDS_FLAG"] + ".start"))


class Fails(World):
    """Raises at the fifth step of every episode."""

    def misbehave(self) -> None:
        if self._steps == 5:
            raise ValueError("the lever broke")


class NotFinite(World):
    """From its fifth step on it rewards nothing that is a number."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if self._steps >= 5 else reward, *rest


WORLDS = {"Plain": World, "Hangs": Hangs, "HangsAtStart": HangsAtStart, "Fails": Fails, "NotFinite": NotFinite}
for name, world in WORLDS.items():
    gymnasium.register(f"{name}-v0", world)
