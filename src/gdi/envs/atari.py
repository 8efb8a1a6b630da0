"""The 57 Atari games on ale-py's C++ vector environment.

Each step returns one frame, and the frames are stacked in front of the network. A protocol sets all settings of the
emulator. This module corrects three properties of the vector environment:

- It draws at least 0 no-ops, but a protocol with no-ops requires at least 1.
- If it truncates an episode itself, it stops before it draws the last frame, from which a truncated step bootstraps.
- It does not implement SABER's rule for stuck agents.

The vector environment cannot be saved, so a resumed run starts new episodes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gdi.cores import thread_count
from gdi.envs.base import EnvSpec, StepResult, nothing_beside
from gdi.envs.protocols import AtariProtocol
from gdi.scores.games import canonical_game
from gdi.types import Array, State

NO_FRAME_LIMIT = (1 << 31) - 1


class AtariEnv:
    """N copies of one game whose observations are single gray frames, [84, 84] bytes."""

    def __init__(
        self, env_id: str, num_envs: int, protocol: AtariProtocol, max_episode_steps: int = 0, threads: int = 0
    ) -> None:
        from ale_py.vector_env import AtariVectorEnv
        from gymnasium.vector import AutoresetMode

        game, repeat = canonical_game(env_id), protocol.action_repeat
        self.num_envs = num_envs
        self.protocol = protocol
        self.beside = nothing_beside(num_envs)
        self._env: Any = AtariVectorEnv(
            game,
            num_envs,
            num_threads=min(num_envs, thread_count(threads)),
            max_num_frames_per_episode=NO_FRAME_LIMIT,
            repeat_action_probability=protocol.sticky_action_prob,
            full_action_space=protocol.full_action_space,
            continuous=False,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=protocol.image_side,
            img_width=protocol.image_side,
            grayscale=True,
            stack_num=1,
            frameskip=repeat,
            maxpool=True,
            # ALE draws from 0 to one less than this, and ``_redraw_zero_noops`` repeats the draws of 0.
            noop_max=protocol.max_noop_frames + 1 if protocol.max_noop_frames else 0,
            episodic_life=protocol.life_information,
            life_loss_info=protocol.life_information,
            reward_clipping=False,
            use_fire_reset=False,
        )
        self._own_frames = _start_frames(game) if protocol.max_noop_frames else 0
        self._cut_steps, self._stuck_steps = protocol.cut_steps(max_episode_steps), protocol.stuck_steps
        self._steps = np.zeros(num_envs, np.int64)
        self._steps_without_reward = np.zeros(num_envs, np.int64)
        self._resets = np.zeros(num_envs, bool)  # the next step is a reset
        self._truncated = np.zeros(num_envs, bool)  # we truncated the episode, which ALE does not know
        side = protocol.image_side
        self.spec = EnvSpec(
            observation_shape=(side, side, protocol.frame_stack),
            observation_dtype=np.dtype(np.uint8),
            num_actions=len(self._env.ale.get_action_set()),
            frames_per_step=repeat,
            frame_stack=protocol.frame_stack,
        )

    def reset(self, seed: int) -> Array:
        # Each copy gets a child seed (31 bits for ALE), because with seed + i, runs 1 and 2 would share all but one.
        seeds = np.random.SeedSequence(seed).generate_state(self.num_envs) >> 1
        obs, info = self._env.reset(seed=seeds.astype(np.int64))
        self._steps[:] = self._steps_without_reward[:] = 0
        self._resets[:] = self._truncated[:] = False
        return self._frames(self._redraw_zero_noops(obs, info, np.ones(self.num_envs, bool)))

    def step(self, action: Array) -> StepResult:
        obs, reward, terminated, _, info = self._env.step(action)
        resets = self._resets
        if self._truncated.any():
            # ALE kept playing in these environments. Discard its results, because they belong to no episode.
            obs, info = self._reset_some(obs, self._truncated)
            reward[self._truncated] = 0
            terminated[self._truncated] = False
        if resets.any():
            obs = self._redraw_zero_noops(obs, info, resets)
        self._steps = np.where(resets, 0, self._steps + 1)
        self._steps_without_reward = np.where(resets | (reward != 0), 0, self._steps_without_reward + 1)
        cut = self._steps >= self._cut_steps
        if self._stuck_steps:
            cut |= self._steps_without_reward >= self._stuck_steps
        self._truncated = cut & ~terminated
        self._resets = terminated | self._truncated
        return StepResult(self._frames(obs), reward.astype(np.float32), terminated, self._truncated)

    def _redraw_zero_noops(self, obs: Array, info: dict[str, Array], resets: Array) -> Array:
        """Redraw the no-ops of new episodes that got 0, so that the count is uniform over 1..n."""
        while (
            self.protocol.max_noop_frames
            and (none := resets & (info["episode_frame_number"] == self._own_frames)).any()
        ):
            obs, info = self._reset_some(obs, none)
        return obs

    def _reset_some(self, obs: Array, which: Array) -> tuple[Array, dict[str, Array]]:
        fresh, info = self._env.reset(options={"reset_mask": which})
        obs[which] = fresh[which]
        return obs, info

    def _frames(self, obs: Array) -> Array:
        return obs[:, 0]  # [N, 1, 84, 84] -> [N, 84, 84]

    def state_dict(self) -> State | None:
        return None  # the emulators of a vector environment cannot be saved

    def load_state_dict(self, state: State) -> Array:
        raise ValueError("an Atari environment cannot be restored: reset it instead.")

    def close(self) -> None:
        self._env.close()


@cache
def _start_frames(game: str) -> int:
    """Return how many frames a game plays before the first action: 0 in most, 134 in Name This Game.

    Sticky actions would make this number random, but no protocol combines them with no-ops.
    """
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path(game)
    assert rom is not None  # ale-py contains all games of the benchmark
    emulator.loadROM(rom)
    emulator.reset_game()
    return int(emulator.getEpisodeFrameNumber())
