"""How a peer plays an evaluation: the same environments, seeds and episodes as our evaluator's."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor

from gdi.config import EnvConfig
from gdi.envs import VectorEnv, make_env
from gdi.evaluation.evaluator import step_limit
from gdi.sweep.peer_env import Observations
from gdi.types import Array


class Player:
    """How a peer plays in an evaluation. Its draws come from a generator, because an evaluation must not train."""

    def __init__(self, model: BaseAlgorithm, epsilon: float = 0.0) -> None:
        self._model, self._epsilon = model, epsilon
        self._state: Any = None  # of the LSTM, if there is one

    def begin(self) -> None:
        self._state = None

    def act(self, obs: Tensor, generator: torch.Generator) -> Tensor:
        """Return an action per environment: drawn from the policy, or nearly greedy by Q."""
        policy: Any = self._model.policy
        if hasattr(policy, "lstm_actor"):
            return self._draw(self._recurrent(policy, obs), generator)
        if hasattr(policy, "get_distribution"):
            return self._draw(policy.get_distribution(obs), generator)
        if hasattr(policy, "quantile_net"):
            return self._nearly_greedy(policy.quantile_net(obs).mean(1), generator)
        return self._nearly_greedy(policy.q_net(obs), generator)

    def _draw(self, distribution: Any, generator: torch.Generator) -> Tensor:
        return torch.multinomial(distribution.distribution.probs, 1, generator=generator)[:, 0]

    def _recurrent(self, policy: Any, obs: Tensor) -> Any:
        starts = torch.zeros(len(obs))
        if self._state is None:
            layers, _, units = policy.lstm_hidden_state_shape
            self._state = (torch.zeros(layers, len(obs), units), torch.zeros(layers, len(obs), units))
            starts = torch.ones(len(obs))
        distribution, self._state = policy.get_distribution(obs, self._state, starts)
        return distribution

    def _nearly_greedy(self, q: Tensor, generator: torch.Generator) -> Tensor:
        explored = torch.rand(len(q), generator=generator) < self._epsilon
        drawn = torch.randint(q.shape[1], (len(q),), generator=generator)
        return torch.where(explored, drawn, q.argmax(1))


def play(config: EnvConfig, player: Player, episodes: int, seed: int) -> Array:
    """Return the returns of one episode per environment, played and cut as in gdi's evaluator.

    The generator is separate, because an evaluation must not change training.
    """
    with closing(make_env(config, episodes)) as env:
        return _play(env, step_limit(config), player, episodes, seed)


def _play(env: VectorEnv, limit: int, player: Player, episodes: int, seed: int) -> Array:
    seen = Observations(env.spec, episodes)
    env_seed, action_seed = (int(s) for s in np.random.SeedSequence(seed).generate_state(2))
    generator = torch.Generator().manual_seed(action_seed)
    obs, starts = env.reset(env_seed), np.ones(episodes, bool)
    returns, playing = np.zeros(episodes), np.ones(episodes, bool)
    player.begin()
    steps = 0
    while playing.any() and steps < limit:
        steps += 1
        with torch.inference_mode():
            action = player.act(torch.from_numpy(seen.see(obs, starts)).float(), generator).numpy()
        obs, reward, terminated, truncated = env.step(action)
        returns += reward * playing
        starts = np.zeros(episodes, bool)
        playing &= ~(terminated | truncated)
    return returns
