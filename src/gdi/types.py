"""The data that flows between the parts, and the time convention, stated once.

Time convention. Arrays are time-major, ``[T, B, ...]``. At time t the agent sees ``obs[t]`` (and ``episode_start[t]``),
takes ``action[t]`` with probability ``behavior_prob[t]`` under the index ``index[t]``, and receives ``reward[t]``,
``terminated[t]``, ``truncated[t]``. The bootstrap entry is index T: ``obs``, ``episode_start``, ``previous_action``,
``previous_reward`` and ``index`` therefore have T + 1 entries. ``terminated`` stops the bootstrap, ``truncated`` does
not. Recurrent state is reset exactly where ``episode_start`` is true, and there a newly drawn λ takes effect:
``index[t]`` is the λ of the episode that ``obs[t]`` belongs to.

Episode ends. Environments reset on the step *after* an episode's last one (Gymnasium's next-step mode), so the true
final observation stands in the stream: after an episode ends at t, ``obs[t + 1]`` is its final observation, on which a
truncated step bootstraps, and step t + 1 itself is the reset: its action is ignored and it is no transition, hence
``valid[t + 1]`` is false. The new episode begins at t + 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Metrics = dict[str, float]
# A nested dict of arrays, tensors, numbers and strings: what a checkpoint can hold without executing code on load.
State = dict[str, Any]


# λ, the index of one behavior policy: its components in the order of ``IndexSpace.names``.
Index: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class EpisodeEnd:
    """One finished training episode: what the operator E learns from."""

    env: int
    index: Index
    episode_return: float  # raw: undiscounted and unshaped
    length_steps: int
    truncated: bool


@dataclass(frozen=True)
class Window:
    """B sequences side by side, each of L = burn-in + trained steps, in the time convention of this module.

    The actor writes one per stretch of acting (B = its environments). A batch for the learner has the same layout: the
    columns of several windows, gathered.
    """

    obs: Array  # [S - 1 + L + 1, B, *frame]: S frames are stacked on the way into the network, see networks.frames
    episode_start: Array  # [L + 1, B] bool
    previous_action: Array  # [L + 1, B] int64
    previous_reward: Array  # [L + 1, B] float32, raw
    index: Array  # [L + 1, B, components of λ] float32, λ as acted
    action: Array  # [L, B] int64
    reward: Array  # [L, B] float32, raw
    terminated: Array  # [L, B] bool
    truncated: Array  # [L, B] bool
    valid: Array  # [L, B] bool: a real transition inside the step budget
    behavior_prob: Array  # [L, B] float32, μ(a|s) as acted
    version: Array  # [L, B] int64, the parameters' version that acted
    state: Array  # [B, encoders, state size] float32, recurrent state at the first step

    @property
    def num_sequences(self) -> int:
        return int(self.action.shape[1])

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


Batch: TypeAlias = Window

# The only field without a time axis: its columns are on axis 0.
COLUMN_AXIS = {name: 0 if name == "state" else 1 for name in (field.name for field in fields(Window))}


def column_slice(batch: Batch, begin: int, end: int) -> Batch:
    """Columns begin to end as views."""
    if (begin, end) == (0, batch.num_sequences):
        return batch
    return Window(
        **{
            name: array[begin:end] if COLUMN_AXIS[name] == 0 else array[:, begin:end]
            for name, array in batch.arrays().items()
        }
    )


def gather_columns(parts: Sequence[tuple[Window, Array]]) -> Batch:
    """Concatenate chosen columns of several windows: one copy per window and field, none per sequence."""
    total = sum(len(columns) for _, columns in parts)
    out: dict[str, Array] = {}
    for name, axis in COLUMN_AXIS.items():
        first: Array = getattr(parts[0][0], name)
        shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
        target = np.empty(shape, first.dtype)
        begin = 0
        for window, columns in parts:
            end = begin + len(columns)
            source = getattr(window, name)
            if axis == 0:
                target[begin:end] = source[columns]
            else:
                target[:, begin:end] = source[:, columns]
            begin = end
        out[name] = target
    return Window(**out)
