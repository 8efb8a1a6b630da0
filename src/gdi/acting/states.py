"""A random choice of the states that an actor sees, for pictures of what a run explored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gdi.types import Array, EpisodeEnd, SeenStates

# This many times the wanted number of states is picked, so that a stage has too few of them in no practical run.
SURPLUS = 1.5


def picked_share(wanted: int, steps: int) -> float:
    """Return the share of ``steps`` states to pick, so that the ``wanted`` smallest keys are among them."""
    return min(1.0, SURPLUS * wanted / max(1, steps))


class StatePicker:
    """A random choice of states, drawn for each window from a seed and the step at which the window starts.

    It keeps nothing between two windows, so a resumed run picks the same states without a saved generator.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._seed, self._share = seed, share
        self._picks: list[tuple[Array, ...]] = []
        self._ended: list[tuple[int, int, int]] = []
        self._returns: list[float] = []

    def begin(self, first_step: int, length: int, num_envs: int) -> None:
        """Draw which of the window's states are picked."""
        self._keys: Array = np.random.default_rng([self._seed, first_step]).random((length, num_envs))
        self._picked: Array = np.asarray(self._keys < self._share)
        self._due = set(np.flatnonzero(self._picked.any(1)).tolist())
        self._picks, self._ended, self._returns = [], [], []

    def look(
        self, t: int, valid: Array, obs: Array, index: Array, value: Callable[[], Array], names: Callable[[], Array]
    ) -> None:
        """Copy the states of step t that are picked; ``names`` are those of the episodes, [N, 3]."""
        if t in self._due:
            envs = np.flatnonzero(self._picked[t] & valid)
            self._picks.append((obs[envs], value()[envs], index[envs], self._keys[t, envs], names()[envs]))

    def end(self, stream: int, acted_steps: int, episodes: list[EpisodeEnd]) -> None:
        """Note the episodes that ended with the latest step."""
        for episode in episodes:
            self._ended.append((stream, acted_steps - episode.length_steps, episode.env))
            self._returns.append(episode.episode_return)

    def states(self) -> SeenStates | None:
        """Return the picked states and ended episodes of the window, or None if there are none."""
        if not self._picks and not self._ended:
            return None
        empty = (np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0)), np.zeros(0), np.zeros((0, 3)))
        obs, value, index, key, episode = (
            np.concatenate(parts) for parts in zip(*(self._picks or [empty]), strict=True)
        )
        return SeenStates(
            obs=obs,
            value=value.astype(np.float32),
            index=index.astype(np.float32),
            key=key,
            episode=episode.astype(np.int64),
            ended=np.array(self._ended, np.int64).reshape(-1, 3),
            ended_return=np.array(self._returns, np.float64),
        )
