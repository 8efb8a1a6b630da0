"""Stable-Baselines3's PPO and DQN on our MinAtar, with the same games, torso and evaluation.

``peer_settings`` has their settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

from benchmarks.minatar_sweep import peer_settings as given
from benchmarks.minatar_sweep.agents import EPISODES, evaluate_every_steps
from benchmarks.peers import silence
from gdi.config import EnvConfig
from gdi.envs import make_env
from gdi.seeds import child_seed
from gdi.types import Array

Act = Callable[[Tensor, torch.Generator], Tensor]


class SingleGameEnv(gymnasium.Env[Array, np.int64]):
    """One of our games as a gymnasium.Env, so that Stable-Baselines3 resets and bootstraps as usual.

    Our environments reset on the step after the last one, which is not a transition. Here ``reset`` takes that step,
    and every other step is a transition. Observations are channel-first bytes, because a replay memory of floats would
    be four times as large.
    """

    def __init__(self, env_id: str) -> None:
        self._env = make_env(EnvConfig(env_id, num_envs=1))
        height, width, channels = self._env.spec.observation_shape
        self.observation_space = spaces.Box(0, 1, (channels, height, width), np.uint8)
        self.action_space = spaces.Discrete(self._env.spec.num_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        if seed is None:
            obs = self._env.step(np.zeros(1, np.int64)).obs
        else:
            obs = self._env.reset(seed)
        return channels_first(obs)[0], {}

    def step(self, action: np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated = self._env.step(np.array([action]))
        return channels_first(obs)[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def close(self) -> None:
        self._env.close()


def channels_first(obs: Array) -> Array:
    """Convert [N, 10, 10, channels] booleans to [N, channels, 10, 10] bytes."""
    return np.ascontiguousarray(obs.transpose(0, 3, 1, 2)).view(np.uint8)


class Torso(BaseFeaturesExtractor):
    """GDI's torso ``minatar`` for Stable-Baselines3."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space, given.HIDDEN_UNITS)
        channels, height, width = space.shape
        convolved = given.FILTERS * (height - 2) * (width - 2)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, given.FILTERS, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(convolved, given.HIDDEN_UNITS),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x)
        return features


NETWORK = {"features_extractor_class": Torso, "net_arch": [], "normalize_images": False}


def make_ppo(env: DummyVecEnv, steps: int, seed: int) -> tuple[BaseAlgorithm, Act]:
    def rate(left: float) -> float:
        # The last rollout goes slightly past the end, where a plain line would be negative.
        return float(given.PPO["learning_rate"]) * max(left, 0.0)

    settings = {**given.PPO, "learning_rate": rate}
    model = PPO("CnnPolicy", env, policy_kwargs=dict(NETWORK), device="cpu", seed=seed, **settings)

    def act(obs: Tensor, generator: torch.Generator) -> Tensor:
        categorical: Any = model.policy.get_distribution(obs).distribution
        return torch.multinomial(categorical.probs, 1, generator=generator)[:, 0]

    return model, act


def make_dqn(env: DummyVecEnv, steps: int, seed: int) -> tuple[BaseAlgorithm, Act]:
    settings = {**given.DQN, "exploration_fraction": min(1.0, given.DQN_EXPLORATION_STEPS / steps)}
    network = {**NETWORK, "optimizer_kwargs": {"eps": given.DQN_ADAM_EPSILON, "fused": True}}
    model = DQN("CnnPolicy", env, policy_kwargs=network, device="cpu", seed=seed, **settings)

    def act(obs: Tensor, generator: torch.Generator) -> Tensor:
        q = model.q_net(obs)
        explored = torch.rand(len(q), generator=generator) < given.DQN_EVALUATION_EPSILON
        drawn = torch.randint(q.shape[1], (len(q),), generator=generator)
        return torch.where(explored, drawn, q.argmax(1))

    return model, act


MAKE = {"ppo": make_ppo, "dqn": make_dqn}


@dataclass(frozen=True)
class PeerEvaluation:
    """The raw undiscounted returns of complete episodes."""

    steps: int
    seconds: float
    returns: Array


def play(env_id: str, act: Act, episodes: int, seed: int) -> Array:
    """Return the returns of one episode per environment, played as in gdi's evaluator.

    The generator is separate, because an evaluation must not change training.
    """
    env = make_env(EnvConfig(env_id, num_envs=episodes))
    env_seed, action_seed = (int(s) for s in np.random.SeedSequence(seed).generate_state(2))
    generator = torch.Generator().manual_seed(action_seed)
    obs, returns, playing = env.reset(env_seed), np.zeros(episodes), np.ones(episodes, bool)
    while playing.any():
        with torch.inference_mode():
            action = act(torch.from_numpy(channels_first(obs)).float(), generator).numpy()
        obs, reward, terminated, truncated = env.step(action)
        returns += reward * playing
        playing &= ~(terminated | truncated)
    env.close()
    return returns


class EvaluationCallback(BaseCallback):
    """A callback that evaluates every ``every`` steps, and reports training progress."""

    def __init__(self, evaluate: Callable[[int], None], every: int, steps: int, report: Callable[[int], None]) -> None:
        super().__init__()
        self._evaluate, self._every, self._steps, self._report = evaluate, every, steps, report
        self._last = 0

    def _on_step(self) -> bool:
        done = self.num_timesteps
        self._report(done)
        # the end of training has its own evaluation
        if done < self._steps and done // self._every > self._last // self._every:
            self._last = done
            self._evaluate(done)
        return True


def train_peer(name: str, env_id: str, seed: int, steps: int, report: Callable[[int], None]) -> list[PeerEvaluation]:
    """Train to the end and return every evaluation with its wall-clock time.

    The time starts with training and includes evaluations, as gdi's does. A step is a transition. Stable-Baselines3
    gives environment i the seed s + i. A hash of our seed gives s, so that neighboring seeds share no environment.
    """
    torch.set_num_threads(1)
    env = DummyVecEnv([lambda: SingleGameEnv(env_id) for _ in range(given.ENVS[name])])
    model, act = MAKE[name](env, steps, child_seed(seed, name))
    silence(model)
    found: list[PeerEvaluation] = []
    began = time.perf_counter()

    def evaluate(done: int) -> None:
        returns = play(env_id, act, EPISODES, child_seed(seed, "evaluation", done))
        found.append(PeerEvaluation(done, time.perf_counter() - began, returns))

    model.learn(steps, callback=EvaluationCallback(evaluate, evaluate_every_steps(steps), steps, report))
    evaluate(model.num_timesteps)
    env.close()
    return found
