"""Frame stacking just before the network, so that memory and disk hold every frame once.

With a stack of S, the observation at time t consists of the frames t - S + 1, ..., t as channels, oldest first. The
first frame of an episode replaces all frames before it. Stored windows have S - 1 frames before their first step, to
which this rule has already been applied. With S = 1 a frame is the observation, and nothing is stacked.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gdi.types import Array


def stack_indices(episode_start: Tensor, frame_stack: int) -> Tensor:
    """Return which stored frame is at each place of the stack, oldest first: [T, B] flags -> [T, B, S].

    Stored frame j belongs to time j - (S - 1). The place k steps back holds time max(t - k, last start in the window).
    """
    context = frame_stack - 1
    time = torch.arange(len(episode_start), device=episode_start.device).unsqueeze(1)  # [T, 1]
    last_start = torch.where(episode_start, time, -context).cummax(dim=0).values  # [T, B]
    back = torch.arange(context, -1, -1, device=episode_start.device)
    return torch.maximum(time.unsqueeze(-1) - back, last_start.unsqueeze(-1)) + context


def stack_frames(frames: Tensor, episode_start: Tensor, frame_stack: int) -> Tensor:
    """Stack stored frames, [S - 1 + T, B, H, W], by [T, B] flags to observations, [T, B, H, W, S].

    The memory order is [T, B, S, H, W] with whole frames, and the result is a view of it.
    """
    if frame_stack == 1:
        return frames
    columns = frames.shape[1]
    # One flat index for whole frames is ten times faster than an index for each of two axes.
    column = torch.arange(columns, device=frames.device).view(1, -1, 1)
    flat = stack_indices(episode_start, frame_stack) * columns + column  # [T, B, S]
    picked = frames.flatten(0, 1).flatten(1).index_select(0, flat.flatten())
    return picked.view(*flat.shape, *frames.shape[2:]).movedim(2, -1)


class FrameHistory:
    """The latest S frames of N environments."""

    def __init__(self, num_envs: int, frame_shape: tuple[int, ...], dtype: np.dtype[np.generic], frame_stack: int):
        self.frames: Array = np.zeros((num_envs, frame_stack, *frame_shape), dtype)  # oldest first

    def observe(self, frame: Array, episode_start: Array) -> Array:
        """Add the latest frame, [N, *frame]. Return the observation, [N, *observation].

        The observation is valid until the next call.
        """
        if self.frames.shape[1] == 1:
            self.frames = frame[:, None]
            return frame
        self.frames[:, :-1] = self.frames[:, 1:].copy()
        self.frames[:, -1] = frame
        self.frames[episode_start] = frame[episode_start, None]
        return np.moveaxis(self.frames, 1, -1)

    def preview(self, frame: Array, episode_start: Array) -> Array:
        """Return what ``observe`` would, and take nothing."""
        if self.frames.shape[1] == 1:
            return frame
        kept = self.frames.copy()
        seen = self.observe(frame, episode_start).copy()
        self.frames[:] = kept
        return seen

    @property
    def context(self) -> Array:
        """The frames that precede a window whose first frame is the latest one, [S - 1, N, *frame]."""
        return self.frames[:, :-1].swapaxes(0, 1)
