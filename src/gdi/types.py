"""The data that flow between the components, and the time convention they share.

Time convention. Arrays are time-major, ``[T, B, ...]``. At time t the agent sees ``obs[t]`` (and ``episode_start[t]``),
takes ``action[t]`` with probability ``behavior_prob[t]`` under the index ``index[t]``, and receives ``reward[t]``,
``terminated[t]``, ``truncated[t]``. The bootstrap entry is index T: ``obs``, ``episode_start``, ``previous_action``,
``previous_reward``, ``index``, ``vector`` and ``action_mask`` therefore have T + 1 entries. ``terminated`` stops the
bootstrap, but ``truncated`` does not. Recurrent state is reset exactly where ``episode_start`` is true. A newly drawn λ
takes effect there as well, so ``index[t]`` is the λ of the episode that ``obs[t]`` belongs to.

Episode ends. Environments reset on the step *after* an episode's last one (Gymnasium's next-step mode), so the stream
contains the true final observation. If an episode ends at t, ``obs[t + 1]`` is its final observation, and a truncated
step bootstraps from it. Step t + 1 is the reset: its action is ignored, it is not a transition, and ``valid[t + 1]``
is false. The new episode begins at t + 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Metrics = dict[str, float]
# A nested dict of arrays, tensors, numbers and strings, which a checkpoint can load without executing code.
State = dict[str, Any]


# The index of one behavior policy (λ), with its components in the order of ``IndexSpace.names``.
Index: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class EpisodeEnd:
    """One finished training episode, from which the controller (E) learns."""

    env: int
    index: Index
    episode_return: float  # raw: undiscounted and unshaped
    length_steps: int
    truncated: bool


@dataclass(frozen=True)
class SeenStates:
    """States that were picked at random from one window, and the episodes that ended in it.

    A key is uniform in [0, 1). The states with the smallest keys of any set of windows are a uniform sample of it.
    """

    obs: Array  # [n, *frame]
    value: Array  # [n] float32, V(s); NaN if the algorithm has none
    index: Array  # [n, components of λ] float32
    key: Array  # [n] float64
    episode: Array  # [n, 3] int64, the name of the episode: seed of the stream, first step, environment
    ended: Array  # [m, 3] int64, names of the episodes that ended
    ended_return: Array  # [m] float64


@dataclass(frozen=True)
class Window:
    """B parallel sequences of L = burn-in + trained steps, in the time convention of this module.

    The actor fills one window per call of ``collect``, with one column per environment. A batch for the learner has the
    same layout, with columns gathered from several windows.
    """

    obs: Array  # [S - 1 + L + 1, B, *frame]: networks.frames stacks S frames for the network
    episode_start: Array  # [L + 1, B] bool
    previous_action: Array  # [L + 1, B] int64
    previous_reward: Array  # [L + 1, B] float32, raw
    index: Array  # [L + 1, B, components of λ] float32, λ as acted
    action: Array  # [L, B] int64
    reward: Array  # [L, B] float32, raw
    terminated: Array  # [L, B] bool
    truncated: Array  # [L, B] bool
    valid: Array  # [L, B] bool: the step is a transition within the step budget
    behavior_prob: Array  # [L, B] float32, μ(a|s) as acted
    version: Array  # [L, B] int64, version of the parameters that acted
    state: Array  # [B, encoders, state size] float32, recurrent state at the first step
    vector: Array  # [L + 1, B, V] float32, beside an image; V = 0 without one
    action_mask: Array  # [L + 1, B, A] bool, the valid actions; [L + 1, B, 0] if all are
    extras: dict[str, Array] = field(default_factory=dict)  # by name, [L + 1, B]: notes of the algorithm

    @property
    def num_sequences(self) -> int:
        return int(self.action.shape[1])

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name; an extra is named ``extras/<name>``. A field of width 0 is left out."""
        extras = {f"{EXTRAS}{name}": array for name, array in self.extras.items()}
        wide = {name: array for name in WIDTH_FIELDS if (array := getattr(self, name)).shape[-1]}
        return {name: getattr(self, name) for name in FIELDS} | wide | extras


def window_from(arrays: dict[str, Array]) -> Window:
    """Return the window whose arrays these are: the inverse of ``Window.arrays``."""
    extras = {name.removeprefix(EXTRAS): array for name, array in arrays.items() if name.startswith(EXTRAS)}
    nothing = (*arrays["episode_start"].shape, 0)
    wide = {name: arrays.get(name, np.zeros(nothing, dtype)) for name, dtype in WIDTH_FIELDS.items()}
    return Window(**{name: arrays[name] for name in FIELDS}, **wide, extras=extras)


Batch: TypeAlias = Window

EXTRAS = "extras/"
# Fields whose last axis is 0 in most environments, with their types.
WIDTH_FIELDS = {"vector": np.float32, "action_mask": np.bool_}
FIELDS = tuple(field.name for field in fields(Window) if field.name not in ("extras", *WIDTH_FIELDS))
# Fields with an axis of time in front of the columns: all but the recurrent state.
TIMED_FIELDS = tuple(name for name in (*FIELDS, *WIDTH_FIELDS) if name != "state")
# Fields with a row per observation, L + 1 of them; ``obs`` has also the frames in front.
LONG_FIELDS = frozenset({"obs", "episode_start", "previous_action", "previous_reward", "index", *WIDTH_FIELDS})


def column_axis(name: str) -> int:
    """Return the axis of a field's columns. The recurrent state is the only one without a time axis."""
    return 0 if name == "state" else 1


def column_slice(batch: Batch, begin: int, end: int) -> Batch:
    """Return columns ``begin`` to ``end`` as views."""
    if (begin, end) == (0, batch.num_sequences):
        return batch
    cut = slice(begin, end)
    fields = {name: getattr(batch, name)[:, cut] for name in TIMED_FIELDS}
    extras = {name: array[:, cut] for name, array in batch.extras.items()}
    return Window(**fields, state=batch.state[cut], extras=extras)


def gather_columns(parts: Sequence[tuple[Window, Array]]) -> Batch:
    """Concatenate columns of several windows, with one copy per window and field, not per sequence."""
    total = sum(len(columns) for _, columns in parts)
    sources = [(window.arrays(), columns) for window, columns in parts]
    out: dict[str, Array] = {}
    for name, first in sources[0][0].items():
        axis = column_axis(name)
        shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
        target = np.empty(shape, first.dtype)
        begin = 0
        for arrays, columns in sources:
            end = begin + len(columns)
            source = arrays[name]
            if axis == 0:
                target[begin:end] = source[columns]
            else:
                target[:, begin:end] = source[:, columns]
            begin = end
        out[name] = target
    return window_from(out)
