"""A MinAtar that fails once in any process that unpickles this controller's config, such as an actor on Ray.

It fails in its 34th step of eight games, if the file RAY_ENVS_FLAG does not exist yet.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gdi.config import TileBanditConfig
from gdi.envs.base import StepResult
from gdi.envs.minatar import MinAtarEnv
from gdi.types import Array
from ray_envs import is_first

STEP = 34
original, calls = MinAtarEnv.step, iter(range(1, 10**9))


def failing(self: MinAtarEnv, action: Array) -> StepResult:
    """Fail in the middle: half of the games have been stepped."""
    if self.num_envs == 8 and next(calls) == STEP and is_first(Path(os.environ["RAY_ENVS_FLAG"])):
        for game in self._games[:4]:
            game.act(0)
        raise ValueError("a cosmic ray")
    return original(self, action)


if "RAY_ENVS_FLAG" in os.environ:  # in a process of Ray, and not in that of the tests
    MinAtarEnv.step = failing  # type: ignore[method-assign]


@dataclass(frozen=True)
class FaultyConfig(TileBanditConfig):
    """The ordinary bandits, whose class brings the failing environment to every process."""
