"""Actions of any Gymnasium space as numbers from 0, and the masks that say which of them are valid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from gdi.errors import UserError
from gdi.types import Array

# A product of choices beyond this is too large for a head of the network.
MAX_ACTIONS = 4096


class Actions:
    """The numbered actions of one space.

    ``sizes`` are the choices of its dimensions, whose product is numbered with the last dimension fastest.
    """

    def __init__(self, env_id: str, space: Space[Any], bins: int = 0) -> None:
        if bins and not isinstance(space, Box):
            raise UserError(
                f"--env.action-bins {bins} applies only to Box actions, and {env_id} has {type(space).__name__} "
                "actions: drop it."
            )
        self._env_id = env_id
        self.sizes = _sizes(env_id, space, bins)
        self.count = math.prod(self.sizes)
        if self.count > MAX_ACTIONS and not isinstance(space, Discrete):
            few = " lower --env.action-bins, or" if isinstance(space, Box) else ""
            raise UserError(
                f"{env_id} has {len(self.sizes)} dimensions of actions, whose product is above the limit of "
                f"{MAX_ACTIONS:,}:{few} wrap it, so that it has fewer."
            )
        self.notes: tuple[str, ...] = ()
        self._table: Array | None = None
        self._start = 0
        if isinstance(space, Discrete):
            self._start = int(space.start)
        else:
            self._table = _table(space, self.sizes)
            what = f"{type(space).__name__} ({'x'.join(map(str, self.sizes))})"
            self.notes = (f"Actions: {what} becomes {self.count} discrete actions",)

    def own(self, action: Array) -> Array:
        """Return the environment's own actions of these numbers, [N] -> [N, ...]."""
        return action + self._start if self._table is None else self._table[action]

    def mask(self, raw: Array) -> Array:
        """Return masks of N observations as [N, actions] bool.

        A mask has one entry per action, or for several dimensions one per choice of each dimension, one after another.
        """
        entries = raw.reshape(len(raw), -1).astype(bool)
        if len(self.sizes) == 1:
            expected, mask = self.count, entries
        else:
            expected, mask = sum(self.sizes), entries[:, :0]
            if entries.shape[1] == expected:
                parts = np.split(entries, np.cumsum(self.sizes)[:-1], axis=1)
                mask = parts[0]
                for part in parts[1:]:
                    mask = (mask[:, :, None] & part[:, None, :]).reshape(len(mask), -1)
        if entries.shape[1] != expected:
            raise UserError(
                f"{self._env_id} has action masks of {entries.shape[1]} entries, and {expected} are needed for "
                f"{'+'.join(map(str, self.sizes))} choices: fix its action_mask."
            )
        return mask


def _sizes(env_id: str, space: Space[Any], bins: int) -> tuple[int, ...]:
    """Return the number of choices of each dimension."""
    if isinstance(space, Discrete):
        return (int(space.n),)
    if isinstance(space, MultiDiscrete):
        return tuple(int(n) for n in space.nvec.reshape(-1))
    if isinstance(space, MultiBinary):
        return (2,) * math.prod(space.shape)
    if not isinstance(space, Box):
        raise UserError(
            f"{env_id} has {type(space).__name__} actions, which cannot be numbered: wrap it, so that its actions are "
            "Discrete."
        )
    width = math.prod(space.shape)
    if not bins:
        raise UserError(
            f"{env_id} has continuous (Box) actions of shape {tuple(space.shape)}: add --env.action-bins 5 for a grid "
            "of discrete ones."
        )
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise UserError(
            f"{env_id} has actions without limits, which --env.action-bins cannot divide: wrap it, for example with "
            "gymnasium.wrappers.RescaleAction."
        )
    return (bins,) * width


def _table(space: Space[Any], sizes: tuple[int, ...]) -> Array:
    """Return the environment's own action of each number, [actions, *shape]."""
    choices: Array = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)  # [actions, dimensions]
    shape = (len(choices), *(space.shape or ()))
    if isinstance(space, Box):
        low, high = (limit.reshape(-1).astype(np.float64) for limit in (space.low, space.high))
        values: Array = low + (high - low) * choices / (np.array(sizes) - 1)
        return values.reshape(shape).astype(space.dtype)
    if isinstance(space, MultiDiscrete):
        choices = choices + np.asarray(space.start).reshape(-1)
    return choices.reshape(shape).astype(space.dtype)
