"""The state of an actor's environments between two steps."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gdi.types import Array, State


@dataclass
class Stream:
    """The state of N environments between two steps, each array [N, ...]."""

    episode_start: Array  # bool: the observation is an episode's first
    resets: Array  # bool: the next step is a reset, not a transition
    needs_index: Array  # bool: λ of the next episode must still be drawn
    previous_action: Array  # int64
    previous_reward: Array  # float32, raw
    index: Array  # [N, components of λ] float32, of the episode that the observation belongs to
    episode_return: Array  # float64, raw, of the episode so far
    length_steps: Array  # int64, of the episode so far

    def state_dict(self) -> State:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: State) -> Stream:
        return cls(**{field.name: np.array(state[field.name]) for field in fields(cls)})


def first_steps(num_envs: int, num_components: int) -> Stream:
    """Return the state in which all environments start an episode whose λ is not drawn yet."""
    n = num_envs
    return Stream(
        episode_start=np.ones(n, bool),
        resets=np.zeros(n, bool),
        needs_index=np.ones(n, bool),
        previous_action=np.zeros(n, np.int64),
        previous_reward=np.zeros(n, np.float32),
        index=np.zeros((n, num_components), np.float32),
        episode_return=np.zeros(n, np.float64),
        length_steps=np.zeros(n, np.int64),
    )
