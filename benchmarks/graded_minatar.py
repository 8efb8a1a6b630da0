"""MinAtar games whose rewards differ in size: 1, 10 or 100, by the row of the brick or alien that is hit.

    gdi train --env benchmarks.graded_minatar:GradedMinAtar/Breakout-v0 --scale minatar

All else is as in MinAtar, where each of them gives 1. No row can be avoided: a wall or a wave ends with its last one.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from gdi.envs.minatar import DIFFICULTY_RAMPING, MAX_EPISODE_STEPS, NUM_ACTIONS, Game, _game_class
from gdi.types import Array

BRICK_ROWS = {1: 100, 2: 10, 3: 1}  # by the row of the screen
ALIEN_ROWS = np.array([100, 10, 1, 1])  # by the row of the formation, from its top


class GradedBreakout(_game_class("breakout")):  # type: ignore[misc]
    """Breakout whose upper bricks are worth more."""

    def act(self, action: int) -> tuple[int, bool]:
        before = self.brick_map.copy()
        _, terminated = super().act(action)
        broken = (before > self.brick_map).sum(axis=1)  # a new wall adds bricks, and breaks none
        return sum(value * int(broken[row]) for row, value in BRICK_ROWS.items()), terminated


class GradedSpaceInvaders(_game_class("space_invaders")):  # type: ignore[misc]
    """Space Invaders whose upper aliens are worth more."""

    def reset(self) -> None:
        super().reset()
        self.top = 0  # the row of the screen where the formation begins

    def act(self, action: int) -> tuple[int, bool]:
        before, direction = self._aliens(), self.alien_dir
        killed, terminated = super().act(action)
        if killed == before.sum() > 0:
            self.top = 0  # the next wave is there already
            return int(ALIEN_ROWS @ before), terminated
        self.top += self.alien_dir != direction  # the formation moves down when it turns around
        return int(ALIEN_ROWS @ (before - self._aliens())), terminated

    def _aliens(self) -> Array:
        """Return the number of aliens in each row of the formation."""
        rows = (self.top + np.arange(len(ALIEN_ROWS))) % len(self.alien_map)
        return np.asarray(self.alien_map.sum(axis=1)[rows], int)


class GradedMinAtar(gymnasium.Env[Array, int]):
    """One such game, with the sticky actions and the difficulty ramping of MinAtar."""

    def __init__(self, game: type[Any]) -> None:
        self.game = Game(game(ramping=DIFFICULTY_RAMPING))
        self.observation_space = Box(0, 1, tuple(self.game.env.state_shape()), np.bool_)
        self.action_space = Discrete(NUM_ACTIONS)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.game.seed(seed)
        self.game.last_action = 0
        self.game.env.reset()
        return self.game.env.state(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward, terminated = self.game.act(int(action))
        return self.game.env.state(), float(reward), bool(terminated), False, {}


for game in (GradedBreakout, GradedSpaceInvaders):
    gymnasium.register(
        id=f"GradedMinAtar/{game.__name__.removeprefix('Graded')}-v0",
        entry_point=GradedMinAtar,
        max_episode_steps=MAX_EPISODE_STEPS,
        disable_env_checker=True,
        kwargs={"game": game},
    )
