"""One bandit over one axis, equation by equation (eq:bandit_eval, eq:bandit_score, eq:bandit_update).

B = Bandit(mode, l, r, lr, d, acc, ta, to, w, N). Blocks are the axis's cells of width acc. Tiles group ``tile_width``
neighboring blocks, shifted by ``tile_offset`` blocks. Each tile has a value w and a count N.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gdi.types import Array, State

# Below this spread, the values are considered equal, because the z-score of eq:bandit_score would be 0/0.
SIGMA_FLOOR = 1e-8


def tile_of_blocks(num_blocks: int, tile_width: int, tile_offset: int, offset_mode: str) -> Array:
    """Return the tile of each block (M_btt), [blocks].

    ``modulo`` is ordinary tile coding, ⌊(b + to mod ta) / ta⌋. ``literal`` is ⌊max(b − to, 0) / ta⌋, as
    eq:bandit_update is printed, where every block left of the offset falls into tile 0.
    """
    blocks = np.arange(num_blocks)
    if offset_mode == "literal":
        return np.maximum(blocks - tile_offset, 0) // tile_width
    return (blocks + tile_offset % tile_width) // tile_width


def standardize(values: Array) -> Array:
    """Return the z-scores of the values, or 0 if all values are equal.

    (V_i − μ(V)) / σ(V), the first term of eq:bandit_score. [blocks] -> [blocks].
    """
    sigma = values.std()
    return (values - values.mean()) / sigma if sigma > SIGMA_FLOOR else np.zeros_like(values)


def scores(values: Array, counts: Array, total_count: float, ucb_scale: float) -> Array:
    """Return the z-score of each block plus a bonus for rarely tried blocks.

    score_i = (V_i − μ(V)) / σ(V) + c·sqrt(log(1 + Σ_j N_j) / (1 + N_i)) (eq:bandit_score). [blocks] -> [blocks].
    """
    bonus: Array = ucb_scale * np.sqrt(np.log1p(total_count) / (1.0 + counts))
    return standardize(values) + bonus


def top_blocks(score: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the d blocks with the highest scores, with ties in random order (mode argmax)."""
    shuffled = rng.permutation(len(score))
    return shuffled[np.argsort(-score[shuffled], kind="stable")[:count]]


def random_blocks(score: Array, count: int, rng: np.random.Generator) -> Array:
    """Draw d blocks without replacement, with scores as logits by the Gumbel top-d trick (mode random)."""
    return np.argsort(-(score + rng.gumbel(size=len(score))), kind="stable")[:count]


@dataclass
class TileBandit:
    """The bandit B: its settings, and the value (w) and count (N) of each tile."""

    mode: Literal["argmax", "random"]
    learning_rate: float
    num_candidates: int
    tile_of_block: Array  # [blocks]
    weights: Array = field(init=False)  # w, [tiles]
    counts: Array = field(init=False)  # N, [tiles]

    def __post_init__(self) -> None:
        num_tiles = int(self.tile_of_block.max()) + 1
        self.weights = np.zeros(num_tiles)
        self.counts = np.zeros(num_tiles)

    def values(self) -> Array:
        """Return the value of each block, which is the mean over its tiles.

        V_i = mean of w over the tiles of block i (eq:bandit_eval). [blocks].
        A bandit has one tiling, so a block has one tile.
        """
        return self.weights[self.tile_of_block]

    def block_counts(self) -> Array:
        """Return the count of each block's tile (N_i), [blocks]."""
        return self.counts[self.tile_of_block]

    def estimates(self) -> Array:
        """Return each block's estimated return without the bias of its start at 0, [blocks].

        Untried blocks are NaN.

        w starts at 0, and that start decays only as (1 − lr)^N. A rarely tried tile is therefore biased toward 0, which
        looks good if returns are negative. Dividing by 1 − (1 − lr)^N removes the bias. Only evaluation and logs use
        this. Proposals use V as printed.
        """
        with np.errstate(invalid="ignore"):
            estimate = self.weights / (1.0 - (1.0 - self.learning_rate) ** self.counts)
        return estimate[self.tile_of_block]

    def scores(self, ucb_scale: float) -> Array:
        return scores(self.values(), self.block_counts(), self.counts.sum(), ucb_scale)

    def candidates(self, score: Array, rng: np.random.Generator) -> Array:
        """Choose d candidate blocks by score, in this bandit's mode."""
        choose = top_blocks if self.mode == "argmax" else random_blocks
        return choose(score, self.num_candidates, rng)

    def update(self, block: int, target: float) -> None:
        """Move the value of a block's tile toward the return, and count the episode.

        w_j ← w_j + lr·(g − V_i), N_j ← N_j + 1 (eq:bandit_update), where j is the tile of block i.
        """
        tile = self.tile_of_block[block]
        self.weights[tile] += self.learning_rate * (target - self.weights[tile])
        self.counts[tile] += 1.0

    def state_dict(self) -> State:
        return {
            "mode": self.mode,
            "learning_rate": self.learning_rate,
            "tile_of_block": self.tile_of_block.copy(),
            "weights": self.weights.copy(),
            "counts": self.counts.copy(),
        }

    def load_state_dict(self, state: State) -> None:
        if len(state["tile_of_block"]) != len(self.tile_of_block):
            raise ValueError(f"a bandit has {len(state['tile_of_block'])} blocks, not {len(self.tile_of_block)}")
        self.mode = state["mode"]
        self.learning_rate = float(state["learning_rate"])
        self.tile_of_block = np.array(state["tile_of_block"])
        self.weights = np.array(state["weights"])
        self.counts = np.array(state["counts"])
