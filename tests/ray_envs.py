"""Misbehaving environments for processes that import them by name: ``ray_envs:Hangs-v0``.

Some misbehave only once. They remember it in a file, whose path is in the environment variable RAY_ENVS_FLAG.
Those of ``FAULTS`` have one fault each, once, in the fifth step of an episode.
"""

from __future__ import annotations

import multiprocessing
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


def is_first(flag: Path) -> bool:
    """Return True for the first of all processes that asks with this file."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def hang_once(flag: Path) -> None:
    if is_first(flag):
        time.sleep(10_000)


class Hangs(MisbehavingEnv):
    """An environment of which one copy sleeps forever, once. The others are slow, for a test waits meanwhile."""

    def misbehave(self) -> None:
        time.sleep(0.001)
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


class FaultyOnce(MisbehavingEnv):
    """An environment that has one fault, once."""

    def step(self, action: int) -> Any:
        result = super().step(action)
        if self._steps == 5 and is_first(Path(os.environ["RAY_ENVS_FLAG"])):
            return self.fault(result)
        return result

    def fault(self, result: Any) -> Any:
        raise ValueError("the lever broke")


class WrongTuple(FaultyOnce):
    def fault(self, result: Any) -> Any:
        return result[:4]


class WrongShape(FaultyOnce):
    def fault(self, result: Any) -> Any:
        return np.zeros(4, np.float32), *result[1:]


class TooLarge(FaultyOnce):
    """An environment with a number that is finite, but not as float32."""

    def fault(self, result: Any) -> Any:
        return np.full(3, 1e300), *result[1:]


class HangsOnce(FaultyOnce):
    def fault(self, result: Any) -> Any:
        time.sleep(10_000)


class ProcessDies(FaultyOnce):
    """An environment with a process of its own, which dies."""

    def fault(self, result: Any) -> Any:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(10_000,), daemon=True)
        process.start()
        there.close()
        process.kill()
        process.join()
        return here.recv()


FAULTS = {
    "Raises": FaultyOnce,
    "WrongTuple": WrongTuple,
    "WrongShape": WrongShape,
    "TooLarge": TooLarge,
    "HangsOnce": HangsOnce,
    "ProcessDies": ProcessDies,
}
ENVS = {
    "Plain": MisbehavingEnv,
    "Hangs": Hangs,
    "HangsAtStart": HangsAtStart,
    "Fails": Fails,
}
for name, env in {**ENVS, **FAULTS}.items():
    gymnasium.register(f"{name}-v0", env)
