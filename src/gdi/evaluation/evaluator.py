"""The evaluator: separate environments, λ from the controller without its bonus, raw undiscounted returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from gdi import policy
from gdi.config import EnvConfig
from gdi.envs.base import VectorEnv
from gdi.envs.names import is_atari
from gdi.networks import AgentInput, AgentNetwork, FrameHistory
from gdi.scores.games import canonical_game
from gdi.scores.metrics import normalise
from gdi.scores.reference import load_reference
from gdi.types import Index

# An environment without a time limit of its own must not hang an evaluation: 30 minutes of Atari at 15 steps a second.
MAX_EPISODE_STEPS = 27_000
NEVER_STEPS = 1 << 62
CPU = torch.device("cpu")
MAX_ENVS = 32


@dataclass(frozen=True)
class Evaluation:
    """Returns of whole episodes, summarised."""

    env: str
    episodes: int
    mean: float
    median: float
    min: float
    max: float
    std: float
    length_mean_steps: float
    cut_episodes: int  # did not end by themselves; their environments play no further episode
    protocol: str = ""  # Atari: how the games were presented and cut
    # Atari: the mean beside random play, humans and world records, as fractions (the paper's baselines).
    hns: float | None = None
    hwrns: float | None = None
    saber: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def num_envs_for(episodes: int) -> int:
    return min(episodes, MAX_ENVS)


class Evaluator:
    """Plays a fixed number of episodes in each of its environments, so that short episodes get no extra weight."""

    def __init__(self, config: EnvConfig, env: VectorEnv, network: AgentNetwork, device: torch.device = CPU) -> None:
        self._config = config
        self._max_episode_steps = max(MAX_EPISODE_STEPS, config.max_episode_steps)
        if is_atari(config.id):  # every protocol has a cut of its own
            self._max_episode_steps = NEVER_STEPS
        self._env = env
        spec = env.spec
        self._history = FrameHistory(env.num_envs, spec.frame_shape, spec.observation_dtype, spec.frame_stack)
        self._network = network.to(device).eval()
        self._device = device

    def evaluate(
        self,
        params: dict[str, torch.Tensor],
        propose: Callable[[int, np.random.Generator], Index],
        episodes: int,
        seed: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> Evaluation | None:
        """``episodes`` episodes, the same for the same seed; ``propose`` gives environment i its λ.

        None if ``stop`` turned true before all of them were played.
        """
        self._network.load_state_dict(params)
        env, n = self._env, self._env.num_envs
        env_seed, rng_seed, action_seed = (int(s) for s in np.random.SeedSequence(seed).generate_state(3))
        rng = np.random.default_rng(rng_seed)
        generator = torch.Generator().manual_seed(action_seed)
        quota = np.full(n, episodes // n) + (np.arange(n) < episodes % n)
        obs = env.reset(env_seed)
        index = np.array([propose(i, rng) for i in range(n)], np.float32)
        state = self._network.initial_state(n).to(self._device)
        start, resets = np.ones(n, bool), np.zeros(n, bool)
        action, reward = np.zeros(n, np.int64), np.zeros(n, np.float32)
        returns, lengths = np.zeros(n), np.zeros(n, np.int64)
        finished_returns: list[float] = []
        finished_lengths: list[int] = []
        cut = 0
        while quota.any():
            if stop():
                return None
            observation = self._history.observe(obs, start)
            with torch.inference_mode():
                seen = (torch.from_numpy(x).unsqueeze(0) for x in (observation, start, action, reward))
                inputs = AgentInput(*(x.to(self._device) for x in seen))
                output = self._network(inputs, state)
                state = output.state
                probabilities = policy.probs(output.advantage[0].cpu(), torch.from_numpy(index))
                action = policy.sample(probabilities, generator).numpy()
            obs, reward, terminated, truncated = env.step(action)
            returns += reward
            lengths += ~resets
            done = terminated | truncated
            too_long = (lengths >= self._max_episode_steps) & ~done
            for i in np.flatnonzero((done | too_long) & (quota > 0)):
                finished_returns.append(float(returns[i]))
                finished_lengths.append(int(lengths[i]))
                cut += int(too_long[i])
                # An environment that we had to cut does not reset by itself: it plays no further episode.
                quota[i] = 0 if too_long[i] else quota[i] - 1
                index[i] = propose(int(i), rng)
            returns[done], lengths[done] = 0.0, 0
            start, resets = resets, done
        mean = float(np.mean(finished_returns))
        config, judged = self._config, {}
        if is_atari(config.id):
            judged = normalise(canonical_game(config.id), mean, load_reference("paper"))
        return Evaluation(
            env=config.id,
            episodes=len(finished_returns),
            mean=mean,
            median=float(np.median(finished_returns)),
            min=float(np.min(finished_returns)),
            max=float(np.max(finished_returns)),
            std=float(np.std(finished_returns)),
            length_mean_steps=float(np.mean(finished_lengths)),
            cut_episodes=cut,
            protocol=config.protocol,
            **judged,
        )

    def close(self) -> None:
        self._env.close()
