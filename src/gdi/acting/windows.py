"""The arrays of a window: new and empty, with the burn-in of the window before, and with the algorithm's notes."""

from __future__ import annotations

import numpy as np
import torch

from gdi.config import DataConfig
from gdi.envs.base import VectorEnv
from gdi.networks.frames import stack_indices
from gdi.types import Array, Window


def empty_window(length: int, env: VectorEnv, num_components: int, state: Array) -> Window:
    """Allocate a zeroed window of ``length`` steps for all environments. Unwritten steps stay invalid."""
    n, spec = env.num_envs, env.spec
    return Window(
        obs=np.zeros((spec.frame_stack - 1 + length + 1, n, *spec.frame_shape), spec.observation_dtype),
        episode_start=np.zeros((length + 1, n), bool),
        previous_action=np.zeros((length + 1, n), np.int64),
        previous_reward=np.zeros((length + 1, n), np.float32),
        index=np.zeros((length + 1, n, num_components), np.float32),
        action=np.zeros((length, n), np.int64),
        reward=np.zeros((length, n), np.float32),
        terminated=np.zeros((length, n), bool),
        truncated=np.zeros((length, n), bool),
        valid=np.zeros((length, n), bool),
        behavior_prob=np.ones((length, n), np.float32),
        version=np.zeros((length, n), np.int64),
        state=state,
        vector=np.zeros((length + 1, n, spec.vector_width), np.float32),
        action_mask=np.ones((length + 1, n, spec.num_actions if spec.has_mask else 0), bool),
    )


def copy_burn_in(window: Window, states: Array, last: Window, last_states: Array, config: DataConfig) -> None:
    """Copy the last steps of the window before to the front of a window, with their recurrent states."""
    burn_in, source = config.burn_in_steps, config.sequence_steps
    context, kept = len(window.obs) - len(window.episode_start), slice(0, burn_in)
    for name, array in window.arrays().items():
        if name not in ("state", "obs"):
            array[kept] = getattr(last, name)[source : source + burn_in]
    if context:
        stack = stack_indices(torch.from_numpy(last.episode_start), context + 1)[source].numpy()  # [N, S]
        window.obs[:context] = last.obs[stack[:, :-1].T, np.arange(window.num_sequences)]
    begin = context + source
    window.obs[context : context + burn_in] = last.obs[begin : begin + burn_in]
    states[kept] = last_states[source : source + burn_in]


def write_notes(window: Window, t: int, notes: dict[str, Array]) -> None:
    """Write the algorithm's notes of time t, each [N]."""
    for name, note in notes.items():
        if name not in window.extras:
            window.extras[name] = np.zeros((len(window.episode_start), len(note)), np.float32)
        window.extras[name][t] = note
