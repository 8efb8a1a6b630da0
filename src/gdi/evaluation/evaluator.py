"""The evaluator: it plays separate environments and reports raw, undiscounted returns.

The controller chooses λ without its exploration bonus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from gdi.acting.player import Observed, Player
from gdi.config import EnvConfig
from gdi.envs.base import StepResult, VectorEnv, newest_faults, replaced
from gdi.envs.names import is_atari
from gdi.envs.protocols import protocol_changes
from gdi.types import Array, Index, State

# An environment without its own time limit must not hang an evaluation. The limit is 30 minutes of Atari at 15 steps
# per second.
MAX_EPISODE_STEPS = 27_000
NO_STEP_LIMIT = 1 << 62
MAX_ENVS = 32

# propose(env, rng) returns λ for the next episode of an environment.
ProposeBest = Callable[[int, np.random.Generator], Index]


@dataclass(frozen=True)
class Evaluation:
    """A summary of the returns of whole episodes."""

    env: str
    episodes: int
    mean: float
    median: float
    min: float
    max: float
    std: float
    length_mean_steps: float
    cut_episodes: int  # episodes that did not end by themselves; their environments play no further episode
    protocol: str = ""  # the Atari protocol, or empty
    changes: str = ""  # what differs from that protocol, for example that episodes were cut
    returns: tuple[float, ...] = ()  # of all episodes, in the order in which they ended
    restarts: int = 0  # environments that failed and were replaced; their episodes were played again

    @property
    def label(self) -> str:
        """The rules under which the scores were made."""
        return f"{self.protocol}, changed: {self.changes}" if self.changes else self.protocol

    def to_dict(self) -> dict[str, Any]:
        """Return the summary, without the single returns, and without changes and restarts if there are none."""
        optional = ("changes", "restarts")
        values = {name: value for name, value in asdict(self).items() if value or name not in optional}
        del values["returns"]
        return values

    def state_dict(self) -> State:
        """Return the evaluation for a checkpoint, with the single returns."""
        return {**self.to_dict(), "returns": list(self.returns)}

    @classmethod
    def from_state(cls, state: State) -> Evaluation:
        """Return the evaluation of a checkpoint. Early checkpoints have no single returns."""
        return cls(**{**state, "returns": tuple(state.get("returns", ()))})


@dataclass
class Played:
    """The episodes of an evaluation that ended so far."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    cut: int = 0
    restarts: int = 0


def num_envs_for(episodes: int) -> int:
    return min(episodes, MAX_ENVS)


def step_limit(config: EnvConfig) -> int:
    """Return the steps after which an evaluation cuts an episode. Every Atari protocol has its own limit."""
    return NO_STEP_LIMIT if is_atari(config.id) else max(MAX_EPISODE_STEPS, config.max_episode_steps)


class Evaluator:
    """A player of a fixed number of episodes per environment, so that short episodes get no extra weight."""

    def __init__(self, config: EnvConfig, env: VectorEnv, player: Player, index: Index = ()) -> None:
        """``index``: the λ of every episode; empty leaves the choice to the controller."""
        self._config = config
        self._max_episode_steps = step_limit(config)
        self._env = env
        self._player = player
        self._index = index

    def evaluate(
        self,
        params: dict[str, torch.Tensor],
        propose: ProposeBest,
        episodes: int,
        seed: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> Evaluation | None:
        """Play ``episodes`` episodes, which are the same for the same seed; ``propose`` chooses their λ.

        Return None if ``stop`` became true before all of them were played.
        """
        self._player.network.load_state_dict(params)
        self._player.begin()
        n = self._env.num_envs
        env_seed, rng_seed, action_seed = (int(s) for s in np.random.SeedSequence(seed).generate_state(3))
        rng = np.random.default_rng(rng_seed)
        generator = torch.Generator().manual_seed(action_seed)
        quota = np.full(n, episodes // n) + (np.arange(n) < episodes % n)
        obs = self._env.reset(env_seed)
        if self._index:
            propose = self._always
        index = np.array([propose(i, rng) for i in range(n)], np.float32).reshape(n, -1)
        next_index = index.copy()  # drawn when an episode ends, and used from the start of the next one
        start, resets = np.ones(n, bool), np.zeros(n, bool)
        action, reward = np.zeros(n, np.int64), np.zeros(n, np.float32)
        returns, lengths = np.zeros(n), np.zeros(n, np.int64)
        played = Played()
        while quota.any():
            if stop():
                return None
            index[start] = next_index[start]
            action = self._player.act(Observed(obs, start, action, reward, index, *self._env.beside), generator).action
            step = self._env.step(action)
            obs, reward = step.obs, step.reward
            returns += reward
            lengths += ~resets
            dropped = replaced(newest_faults(self._env))
            played.restarts += len(dropped)
            for i in [*self._note_ended(step, returns, lengths, quota, played), *dropped]:
                next_index[i] = propose(int(i), rng)
            done = step.terminated | step.truncated
            resets[dropped] = True
            # A reset step may have a reward, that of the first step of an episode that did not wait.
            returns[done], lengths[done] = 0.0, 0
            returns[dropped], lengths[dropped] = 0.0, 0
            start, resets = resets, done
        return self._summary(played)

    def _always(self, env: int, rng: np.random.Generator) -> Index:
        return self._index

    def _note_ended(self, step: StepResult, returns: Array, lengths: Array, quota: Array, played: Played) -> Array:
        """Record the episodes that just ended and are part of the quota. Return their environments."""
        done = step.terminated | step.truncated
        too_long = (lengths >= self._max_episode_steps) & ~done
        envs = np.flatnonzero((done | too_long) & (quota > 0))
        for i in envs:
            played.returns.append(float(returns[i]))
            played.lengths.append(int(lengths[i]))
            played.cut += int(too_long[i])
            # An environment whose episode we cut off does not reset itself, so it plays no further episode.
            quota[i] = 0 if too_long[i] else quota[i] - 1
        return envs

    def _summary(self, played: Played) -> Evaluation:
        returns = played.returns
        return Evaluation(
            env=self._config.id,
            episodes=len(returns),
            mean=float(np.mean(returns)),
            median=float(np.median(returns)),
            min=float(np.min(returns)),
            max=float(np.max(returns)),
            std=float(np.std(returns)),
            length_mean_steps=float(np.mean(played.lengths)),
            cut_episodes=played.cut,
            protocol=self._config.protocol,
            changes=protocol_changes(self._config) if is_atari(self._config.id) else "",
            returns=tuple(returns),
            restarts=played.restarts,
        )

    def close(self) -> None:
        self._env.close()
