"""Your own controller: it proposes λ near those of the best recent episodes, on GDI-I3.

Run ``python examples/my_controller.py`` to train on CartPole-v1. A controller proposes λ for the next episodes and
observes the returns of those that ended. Only ``observe`` learns. Every checkpoint contains the controller's state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import gdi
from gdi.config import Config
from gdi.controller import Belief, Controller
from gdi.index_space import IndexSpace
from gdi.types import EpisodeEnd, Index, State


@dataclass(frozen=True)
class EliteConfig:
    """The settings, which the run saves in config.json."""

    memory: int = 64
    elite: int = 8
    noise: float = 0.1
    explore: float = 0.2

    def build(self, space: IndexSpace, rng: np.random.Generator) -> Controller:
        return Elite(self, space, rng)


class Elite:
    """A cross-entropy search over λ.

    A proposal is uniform with probability ``explore``, and otherwise near the λ of one of the best recent episodes.
    """

    slots = 1  # all environments are alike

    def __init__(self, config: EliteConfig, space: IndexSpace, rng: np.random.Generator) -> None:
        self._config, self._space, self._rng = config, space, rng
        self._low = np.array([axis.low for axis in space.axes])
        self._high = np.array([axis.high for axis in space.axes])
        self._seen = np.zeros((0, 1 + len(space.axes)))  # [episodes, (return, coordinates)], oldest first

    def _draw(self, rng: np.random.Generator, explore: float) -> Index:
        if len(self._seen) < self._config.elite or rng.random() < explore:
            return self._space.to_index(rng.uniform(self._low, self._high))
        best = self._seen[np.argsort(-self._seen[:, 0], kind="stable")[: self._config.elite], 1:]
        center = best[rng.integers(len(best))]
        spread = self._config.noise * (self._high - self._low) * rng.standard_normal(len(center))
        return self._space.to_index(np.clip(center + spread, self._low, self._high))

    def propose(self, envs: list[int]) -> list[Index]:
        return [self._draw(self._rng, self._config.explore) for _ in envs]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        return self._draw(rng, explore=0.0)

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        for episode in episodes:
            row = [episode.episode_return, *self._space.to_coordinates(episode.index)]
            self._seen = np.vstack([self._seen, row])[-self._config.memory :]

    def belief(self) -> list[Belief]:
        return []  # this controller has no estimates per block

    def state_dict(self) -> State:
        return {"rng": self._rng.bit_generator.state, "seen": self._seen}

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._seen = np.array(state["seen"])


def make_config(env: str, *, steps: int, seed: int = 0) -> Config:
    return replace(gdi.make_config("gdi-i3", env, steps=steps, seed=seed), controller=EliteConfig())


if __name__ == "__main__":
    result = gdi.train(make_config("CartPole-v1", steps=100_000))
    assert result.evaluation is not None
    print(f"mean return {result.evaluation.mean:.1f}; the run is in {result.run_dir}")
