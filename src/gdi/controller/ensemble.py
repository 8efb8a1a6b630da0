"""The paper's controller (alg:bva): M bandits per axis of Λ, all updated by every episode."""

from __future__ import annotations

import numpy as np

from gdi.config import TileBanditConfig
from gdi.controller.base import Belief
from gdi.controller.tile_bandit import TileBandit, standardize, tile_of_blocks, top_blocks
from gdi.index_space import Axis, IndexSpace
from gdi.types import Array, EpisodeEnd, Index, State


def make_bandit(axis: Axis, config: TileBanditConfig, rng: np.random.Generator) -> TileBandit:
    """Make a bandit with a random mode, learning rate, tile width and tile offset, which then stay fixed."""
    width = int(rng.choice(config.tile_widths))
    offset = int(rng.integers(0, config.tile_offset_high, endpoint=True))
    return TileBandit(
        mode="argmax" if rng.random() < 0.5 else "random",
        learning_rate=float(rng.choice(config.learning_rates)),
        num_candidates=min(config.num_candidates, axis.num_blocks),
        tile_of_block=tile_of_blocks(axis.num_blocks, width, offset, config.offset_mode),
    )


class AxisEnsemble:
    """M bandits over one axis."""

    def __init__(self, axis: Axis, config: TileBanditConfig, rng: np.random.Generator) -> None:
        self.axis = axis
        self._ucb_scale = config.ucb_scale
        self._rng = rng
        self.bandits = [make_bandit(axis, config, rng) for _ in range(config.num_bandits)]
        # Scores are cached, because many proposals may come between two observed episodes, which change them.
        self._scores: list[Array | None] = [None] * len(self.bandits)

    def scores(self, m: int) -> Array:
        """Return the scores of bandit m, [blocks]."""
        score = self._scores[m]
        if score is None:
            score = self._scores[m] = self.bandits[m].scores(self._ucb_scale)
        return score

    def propose(self) -> float:
        """Draw x uniformly from the M·d candidates.

        A uniform draw from M·d candidates equals a uniform bandit, then a uniform one of its d candidates. Only that
        bandit is evaluated, which makes a proposal M times cheaper and does not change its distribution.
        """
        m = int(self._rng.integers(len(self.bandits)))
        candidates = self.bandits[m].candidates(self.scores(m), self._rng)
        return self.axis.sample_in_block(int(candidates[self._rng.integers(len(candidates))]), self._rng)

    def propose_best(self, rng: np.random.Generator) -> float:
        """Draw x from the block with the best mean standardized value, without a bonus (c = 0)."""
        block = int(top_blocks(self.mean_values(), 1, rng)[0])
        return self.axis.sample_in_block(block, rng)

    def observe(self, x: float, episode_return: float) -> None:
        block = self.axis.block_of(x)
        for bandit in self.bandits:
            bandit.update(block, episode_return)
        self._invalidate_scores()

    def _invalidate_scores(self) -> None:
        self._scores = [None] * len(self.bandits)

    def mean_values(self) -> Array:
        """Average the bandits' standardized estimates, [blocks]; untried blocks count as average."""
        total = np.zeros(self.axis.num_blocks)
        for bandit in self.bandits:
            estimate = bandit.estimates()
            tried = ~np.isnan(estimate)
            if tried.any():
                total[tried] += standardize(estimate[tried])
        mean: Array = total / len(self.bandits)
        return mean

    def probabilities(self) -> Array:
        """Return the probability of each block in ``propose``, [blocks].

        For a bandit in random mode, it is the probability of the first draw. Later draws are slightly more uniform.
        """
        total = np.zeros(self.axis.num_blocks)
        for m, bandit in enumerate(self.bandits):
            score = self.scores(m)
            if bandit.mode == "argmax":
                # Blocks tied at the threshold share the places that the blocks above it leave free.
                threshold = np.sort(score)[-bandit.num_candidates]
                above, tied = score > threshold, score == threshold
                places = above + tied * (bandit.num_candidates - above.sum()) / tied.sum()
                total += places / bandit.num_candidates
            else:
                weight = np.exp(score - score.max())
                total += weight / weight.sum()
        mean: Array = total / len(self.bandits)
        return mean

    def load_bandits(self, state: State) -> None:
        for m, bandit in enumerate(self.bandits):
            bandit.load_state_dict(state[f"{self.axis.name}.{m}"])
        self._invalidate_scores()

    def belief(self) -> Belief:
        count = np.mean([bandit.block_counts() for bandit in self.bandits], axis=0)
        return Belief(self.axis.name, self.mean_values(), count, self.probabilities())


class BanditEnsemble:
    """One ensemble per searched axis, all updated with the same index and return (λ, G)."""

    slots = 1

    def __init__(self, space: IndexSpace, config: TileBanditConfig, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self.ensembles = [AxisEnsemble(axis, config, rng) for axis in space.axes]

    def propose(self, envs: list[int]) -> list[Index]:
        return [self._space.to_index(np.array([ensemble.propose() for ensemble in self.ensembles])) for _ in envs]

    def propose_best(self, env: int, rng: np.random.Generator) -> Index:
        return self._space.to_index(np.array([ensemble.propose_best(rng) for ensemble in self.ensembles]))

    def observe(self, episodes: list[EpisodeEnd], transitions: int) -> None:
        for episode in episodes:
            coordinates = self._space.to_coordinates(episode.index)
            for ensemble, x in zip(self.ensembles, coordinates, strict=True):
                ensemble.observe(float(x), episode.episode_return)

    def belief(self) -> list[Belief]:
        return [ensemble.belief() for ensemble in self.ensembles]

    def state_dict(self) -> State:
        """Return learned values and settings drawn at creation, which load into an ensemble of any seed."""
        return {
            "rng": self._rng.bit_generator.state,
            "bandits": {
                f"{ensemble.axis.name}.{m}": bandit.state_dict()
                for ensemble in self.ensembles
                for m, bandit in enumerate(ensemble.bandits)
            },
        }

    def load_state_dict(self, state: State) -> None:
        self._rng.bit_generator.state = state["rng"]
        for ensemble in self.ensembles:
            ensemble.load_bandits(state["bandits"])
