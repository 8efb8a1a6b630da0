"""One Atari game in color, for videos: every emulator frame, and the agent's observation.

The vector environment used for training returns neither colors nor the frames that an action repeat skips. This module
runs the same game on ale-py's plain interface. For the same actions, its observations, rewards and ends must equal
those of ``gdi.envs.atari.AtariEnv`` byte for byte (tests/test_video.py). Only the no-ops come from a different
generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gdi.envs.protocols import AtariProtocol
from gdi.envs.screen import ScreenFrame, ScreenStep
from gdi.errors import UserError
from gdi.scores.games import canonical_game
from gdi.types import Array


class AtariScreen:
    """One copy of one game under a protocol. Call ``reset`` before every episode."""

    frames_per_second = 60  # of the console

    def __init__(
        self,
        env_id: str,
        protocol: AtariProtocol,
        rng: np.random.Generator,
        emulator_seed: int,
        max_episode_steps: int = 0,
    ) -> None:
        """Load the game; ``rng`` draws the no-ops.

        ALE draws the sticky actions itself, from ``emulator_seed``, which has 31 bits.
        """
        from ale_py import ALEInterface, LoggerMode, roms

        if protocol.life_information:
            raise UserError("an Atari game with life_information=true cannot be drawn: drop it from --env.kwargs.")
        self.protocol = protocol
        self._rng = rng
        self._cut_steps, self._stuck_steps = protocol.cut_steps(max_episode_steps), protocol.stuck_steps
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._ale: Any = ALEInterface()
        self._ale.setFloat("repeat_action_probability", protocol.sticky_action_prob)
        self._ale.setInt("random_seed", emulator_seed)
        rom = roms.get_rom_path(canonical_game(env_id))
        assert rom is not None  # ale-py contains all games of the benchmark
        self._ale.loadROM(rom)
        full = protocol.full_action_space
        self._actions = self._ale.getLegalActionSet() if full else self._ale.getMinimalActionSet()
        self._noop = self._ale.getLegalActionSet()[0]
        self.num_actions = len(self._actions)
        height, width = self._ale.getScreenDims()
        self.image_shape = (int(height), int(width), 3)

    def reset(self) -> ScreenStep:
        """Start an episode and return its first frame, which follows the no-ops."""
        self._ale.reset_game()
        for _ in range(self._draw_noops()):
            self._ale.act(self._noop)
            if self._ale.game_over():
                self._ale.reset_game()
        # No-ops are not steps, so they do not count toward the episode limit.
        self._steps = self._steps_without_reward = 0
        self._newest: Array = self._ale.getScreenGrayscale()
        self._before: Array = np.zeros_like(self._newest)
        return ScreenStep(self._observe(), 0.0, False, False, [ScreenFrame(self._ale.getScreenRGB(), 0.0)])

    def step(self, action: int) -> ScreenStep:
        """Play one step; ``action`` counts from 0 in the protocol's action set."""
        frames = []
        over = False
        for frames_left in range(self.protocol.action_repeat, 0, -1):
            reward = float(self._ale.act(self._actions[action]))
            frames.append(ScreenFrame(self._ale.getScreenRGB(), reward))
            over = self._ale.game_over()
            if over:
                break  # as in ALE, the last observation of an episode does not include this frame
            if frames_left == 2:
                self._before = self._ale.getScreenGrayscale()
            elif frames_left == 1:
                self._newest = self._ale.getScreenGrayscale()
        total = sum(frame.reward for frame in frames)
        self._steps_without_reward = 0 if total else self._steps_without_reward + 1
        stuck = 0 < self._stuck_steps <= self._steps_without_reward
        self._steps += 1
        truncated = not over and (self._steps >= self._cut_steps or stuck)
        return ScreenStep(self._observe(), total, over, truncated, frames)

    def close(self) -> None:
        """Do nothing, because the emulator holds no resources."""

    def _draw_noops(self) -> int:
        most = self.protocol.max_noop_frames
        return int(self._rng.integers(1, most, endpoint=True)) if most else 0

    def _observe(self) -> Array:
        """Max-pool the last two screens and shrink them. The pooled screen is kept, because ALE keeps it."""
        import cv2

        self._newest = np.maximum(self._newest, self._before)
        side = self.protocol.image_side
        return np.asarray(cv2.resize(self._newest, (side, side), interpolation=cv2.INTER_AREA))


def seeded_screen(env_id: str, protocol: AtariProtocol, seed: int, max_episode_steps: int = 0) -> AtariScreen:
    """Make a game whose randomness comes from one seed."""
    rng = np.random.default_rng(seed)
    return AtariScreen(env_id, protocol, rng, int(rng.integers(2**31)), max_episode_steps)
