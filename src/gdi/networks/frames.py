"""Frame stacking, on the way into the network: memory and disk hold every frame once.

With a stack of S the observation at time t is the frames t - S + 1, ..., t as channels, oldest first. Frames from
before the episode's first one are replaced by that first one. Stored windows carry S - 1 frames in front of their first
step, to which this rule has already been applied. With S = 1 a frame is the observation, and nothing is done.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gdi.types import Array


def stack_indices(episode_start: Tensor, frame_stack: int) -> Tensor:
    """[T, B] flags -> [T, B, S]: which stored frame stands at each place of the stack, oldest first.

    Stored frame j is the one of time j - (S - 1). A place k steps back shows time max(t - k, last start in the window).
    """
    context = frame_stack - 1
    time = torch.arange(len(episode_start), device=episode_start.device).unsqueeze(1)  # [T, 1]
    last_start = torch.where(episode_start, time, -context).cummax(dim=0).values  # [T, B]
    back = torch.arange(context, -1, -1, device=episode_start.device)
    return torch.maximum(time.unsqueeze(-1) - back, last_start.unsqueeze(-1)) + context


def stack_frames(frames: Tensor, episode_start: Tensor, frame_stack: int) -> Tensor:
    """[S - 1 + T, B, H, W] stored frames, [T, B] flags -> [T, B, H, W, S] observations.

    The memory order is [T, B, S, H, W], whole frames; the last axis is moved by a view.
    """
    if frame_stack == 1:
        return frames
    columns = frames.shape[1]
    # Whole frames by one flat index: ten times faster than indexing two axes at once.
    column = torch.arange(columns, device=frames.device).view(1, -1, 1)
    flat = stack_indices(episode_start, frame_stack) * columns + column  # [T, B, S]
    picked = frames.flatten(0, 1).flatten(1).index_select(0, flat.flatten())
    return picked.view(*flat.shape, *frames.shape[2:]).movedim(2, -1)


class FrameHistory:
    """The newest S frames of N environments that are being played."""

    def __init__(self, num_envs: int, frame_shape: tuple[int, ...], dtype: np.dtype[np.generic], frame_stack: int):
        self.frames: Array = np.zeros((num_envs, frame_stack, *frame_shape), dtype)  # oldest first

    def observe(self, frame: Array, episode_start: Array) -> Array:
        """Take the newest frame, [N, *frame]; returns the observation, [N, *observation], valid until the next call."""
        if self.frames.shape[1] == 1:
            self.frames = frame[:, None]
            return frame
        self.frames[:, :-1] = self.frames[:, 1:].copy()
        self.frames[:, -1] = frame
        self.frames[episode_start] = frame[episode_start, None]
        return np.moveaxis(self.frames, 1, -1)

    @property
    def context(self) -> Array:
        """[S - 1, N, *frame]: what a window that begins with the newest frame carries in front of it."""
        return self.frames[:, :-1].swapaxes(0, 1)
