"""The controller of the paper's theory (asp:2): the KL-regularized multiplicative-weights update.

P ← P·exp(η·L_E)/Z. Assumption 2 needs L_E of every λ, but an episode shows it for one. EXP3's unbiased estimate takes
its place. It is the observed return divided by the probability of its block, and 0 elsewhere. Returns are standardized
by their running mean and deviation. Importance weights are relative to the uniform probability. Therefore η means the
same in every environment and on every axis.
"""

from __future__ import annotations

import numpy as np

from gdi.controller.base import Belief
from gdi.controller.tile_bandit import top_blocks
from gdi.index_space import IndexSpace
from gdi.types import Array, EpisodeEnd, Index, State

# Every draw is uniform with this probability, which bounds the importance weight by blocks / share.
UNIFORM_SHARE = 0.1


def multiplicative_weights(log_p: Array, gain: Array, step_size: float) -> Array:
    """Return the log-probabilities after one multiplicative-weights update.

    log(P·exp(η·L)/Z) (asp:2). [blocks] -> [blocks]. Logarithms avoid an overflow for large η.
    """
    logits = log_p + step_size * gain
    top = logits.max()
    normalized: Array = logits - (top + np.log(np.exp(logits - top).sum()))
    return normalized


class MultiplicativeWeights:
    """One distribution over blocks per searched axis."""

    slots = 1

    def __init__(self, space: IndexSpace, step_size: float, rng: np.random.Generator) -> None:
        self._space = space
        self._step_size = step_size
        self._rng = rng
        self._log_p = [np.full(axis.num_blocks, -np.log(axis.num_blocks)) for axis in space.axes]
        self._counts = [np.zeros(axis.num_blocks) for axis in space.axes]
        self._episodes = 0
        self._mean = 0.0
        self._sum_squares = 0.0

    def _probabilities(self, log_p: Array) -> Array:
        mixed = (1.0 - UNIFORM_SHARE) * np.exp(log_p) + UNIFORM_SHARE / len(log_p)
        normalized: Array = mixed / mixed.sum()
        return normalized

    def propose(self, envs: list[int]) -> list[Index]:
        return [self._propose() for _ in envs]

    def _propose(self) -> Index:
        x = []
        for axis, log_p in zip(self._space.axes, self._log_p, strict=True):
            block = int(self._rng.choice(axis.num_blocks, p=self._probabilities(log_p)))
            x.append(axis.sample_in_block(block, self._rng))
        return self._space.to_index(np.array(x))

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        x = []
        for axis, log_p in zip(self._space.axes, self._log_p, strict=True):
            x.append(axis.sample_in_block(int(top_blocks(log_p, 1, rng)[0]), rng))
        return self._space.to_index(np.array(x))

    def _standardize(self, episode_return: float) -> float:
        """Standardize a return by Welford's running moments; the first episode has no spread and counts as 0."""
        self._episodes += 1
        delta = episode_return - self._mean
        self._mean += delta / self._episodes
        self._sum_squares += delta * (episode_return - self._mean)
        deviation = float(np.sqrt(self._sum_squares / self._episodes))
        return (episode_return - self._mean) / deviation if deviation > 0 else 0.0

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        for episode in episodes:
            self._observe(episode.index, episode.episode_return)

    def _observe(self, index: Index, episode_return: float) -> None:
        standard = self._standardize(episode_return)
        coordinates = self._space.to_coordinates(index)
        for i, axis in enumerate(self._space.axes):
            block = axis.block_of(float(coordinates[i]))
            gain = np.zeros(axis.num_blocks)
            gain[block] = standard / self._probabilities(self._log_p[i])[block] / axis.num_blocks
            self._log_p[i] = multiplicative_weights(self._log_p[i], gain, self._step_size)
            self._counts[i][block] += 1.0

    def belief(self) -> list[Belief]:
        return [
            Belief(axis.name, log_p - log_p.mean(), counts, self._probabilities(log_p))
            for axis, log_p, counts in zip(self._space.axes, self._log_p, self._counts, strict=True)
        ]

    def state_dict(self) -> State:
        return {
            "rng": self._rng.bit_generator.state,
            "log_p": {axis.name: p.copy() for axis, p in zip(self._space.axes, self._log_p, strict=True)},
            "counts": {axis.name: n.copy() for axis, n in zip(self._space.axes, self._counts, strict=True)},
            "episodes": self._episodes,
            "mean": self._mean,
            "sum_squares": self._sum_squares,
        }

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._log_p = [np.array(state["log_p"][axis.name]) for axis in self._space.axes]
        self._counts = [np.array(state["counts"][axis.name]) for axis in self._space.axes]
        self._episodes = int(state["episodes"])
        self._mean = float(state["mean"])
        self._sum_squares = float(state["sum_squares"])
