"""DQN and PPO as plain single-file training loops in the style of CleanRL, as peers for measurements of speed.

Each is one loop over environments, buffer, network and optimizer, without logs, checkpoints or evaluation. The numbers
of a run come from the caller, so that both sides of a comparison have the same network, batch and passes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class DQNLoop:
    """The numbers of a DQN run."""

    envs: int
    hidden: int
    batch: int
    capacity: int
    learn_start: int
    steps_per_update: int
    target_period_updates: int


@dataclass(frozen=True)
class PPOLoop:
    """The numbers of a PPO run."""

    envs: int
    hidden: int
    rollout: int
    minibatch: int
    epochs: int


def encoder(channels: int, hidden: int) -> nn.Sequential:
    """MinAtar's network: one 3x3 convolution of 16 filters, and a dense layer."""
    return nn.Sequential(nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 8 * 8, hidden), nn.ReLU())


class Clock:
    """Steps per second after a warm-up."""

    def __init__(self, warm_up: int, steps: int) -> None:
        self._begin_at, self._end_at = warm_up, warm_up + steps
        self._began, self._first = 0.0, 0
        self.rate = 0.0

    def goes_on(self, steps: int) -> bool:
        """Note the steps so far; return False once the measured ones are over."""
        if not self._began and steps >= self._begin_at:
            self._began, self._first = time.perf_counter(), steps
        if steps < self._end_at:
            return True
        self.rate = (steps - self._first) / (time.perf_counter() - self._began)
        return False


class Buffer:
    """The replay buffer of Stable-Baselines3 and CleanRL: an array per field, [capacity, environments]."""

    def __init__(self, rows: int, games: Any, rng: np.random.Generator) -> None:
        self._rng = rng
        shape = (rows, games.num_envs)
        self.obs = np.zeros((*shape, *games.observation_space.shape), np.float32)
        self.next_obs = np.zeros_like(self.obs)
        self.action = np.zeros(shape, np.int64)
        self.reward = np.zeros(shape, np.float32)
        self.done = np.zeros(shape, np.float32)
        self._row, self._filled = 0, 0

    def add(self, *fields: Any) -> None:
        for array, value in zip((self.obs, self.next_obs, self.action, self.reward, self.done), fields, strict=True):
            array[self._row] = value
        self._row = (self._row + 1) % len(self.action)
        self._filled = max(self._filled, self._row or len(self.action))

    def sample(self, batch: int) -> list[Tensor]:
        place = tuple(self._rng.integers(high, size=batch) for high in (self._filled, self.action.shape[1]))
        fields = (self.obs, self.next_obs, self.action, self.reward, self.done)
        return [torch.from_numpy(array[place]) for array in fields]


def dqn_loop(games: Any, numbers: DQNLoop, steps: int) -> float:
    """Train DQN; return transitions per second after the learn start."""
    actions, channels = games.action_space.n, games.observation_space.shape[0]
    online, target = (
        nn.Sequential(encoder(channels, numbers.hidden), nn.Linear(numbers.hidden, actions)) for _ in range(2)
    )
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=2.5e-4)
    rng = np.random.default_rng(0)
    buffer = Buffer(numbers.capacity // numbers.envs, games, rng)
    clock, obs, updates = Clock(numbers.learn_start + 1000, steps), games.reset(), 0
    while clock.goes_on(games.transitions):
        with torch.no_grad():
            greedy = online(torch.from_numpy(obs)).argmax(1).numpy()
        explores = rng.random(numbers.envs) < 0.1
        action = np.where(explores, rng.integers(actions, size=numbers.envs), greedy)
        games.step_async(action)
        seen, reward, done, _ = games.step_wait()
        buffer.add(obs, seen, action, reward, done)
        obs = seen
        due = max(0, games.transitions - numbers.learn_start) // numbers.steps_per_update
        while updates < due:
            s, s2, a, r, d = buffer.sample(numbers.batch)
            with torch.no_grad():
                y = r + 0.99 * target(s2).max(1).values * (1 - d)
            loss = F.mse_loss(online(s).gather(1, a[:, None]).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online.parameters(), 10.0)
            optimizer.step()
            updates += 1
            if updates % numbers.target_period_updates == 0:
                target.load_state_dict(online.state_dict())
    return clock.rate


class ActorCritic(nn.Module):
    """Logits and V on a shared encoder."""

    def __init__(self, channels: int, hidden: int, actions: int) -> None:
        super().__init__()
        self.encoder = encoder(channels, hidden)
        self.logits, self.value = nn.Linear(hidden, actions), nn.Linear(hidden, 1)

    def forward(self, obs: Tensor) -> tuple[torch.distributions.Categorical, Tensor]:
        features = self.encoder(obs)
        return torch.distributions.Categorical(logits=self.logits(features)), self.value(features).squeeze(1)


def ppo_loop(games: Any, numbers: PPOLoop, steps: int) -> float:
    """Train PPO; return transitions per second after one rollout."""
    network = ActorCritic(games.observation_space.shape[0], numbers.hidden, games.action_space.n)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, eps=1e-5)
    size = (numbers.rollout, numbers.envs)
    obs_kept = torch.zeros(*size, *games.observation_space.shape)
    action_kept = torch.zeros(size, dtype=torch.int64)
    log_prob, reward_kept, done_kept, value_kept = (torch.zeros(size) for _ in range(4))
    obs, done = torch.from_numpy(games.reset()), torch.zeros(numbers.envs)
    clock = Clock(numbers.rollout * numbers.envs, steps)
    while clock.goes_on(games.transitions):
        for t in range(numbers.rollout):
            obs_kept[t], done_kept[t] = obs, done
            with torch.no_grad():
                policy, value_kept[t] = network(obs)
                action = policy.sample()
                log_prob[t] = policy.log_prob(action)
            action_kept[t] = action
            games.step_async(action.numpy())
            seen, reward, ended, _ = games.step_wait()
            reward_kept[t], obs, done = (
                torch.from_numpy(reward),
                torch.from_numpy(seen),
                torch.from_numpy(ended).float(),
            )
        with torch.no_grad():
            last = network(obs)[1]
        advantage = estimate(reward_kept, value_kept, done_kept, last, done)
        data = [x.flatten(0, 1) for x in (obs_kept, action_kept, log_prob, advantage, advantage + value_kept)]
        for _ in range(numbers.epochs):
            order = torch.randperm(numbers.rollout * numbers.envs)
            for begin in range(0, len(order), numbers.minibatch):
                rows = order[begin : begin + numbers.minibatch]
                train_minibatch(network, optimizer, *(x[rows] for x in data))
    return clock.rate


def estimate(reward: Tensor, value: Tensor, done: Tensor, last_value: Tensor, last_done: Tensor) -> Tensor:
    """Return generalized advantage estimates with γ = 0.99 and λ = 0.95."""
    advantage, carry = torch.zeros_like(reward), torch.zeros_like(last_value)
    for t in reversed(range(len(reward))):
        following, ended = (last_value, last_done) if t + 1 == len(reward) else (value[t + 1], done[t + 1])
        delta = reward[t] + 0.99 * following * (1 - ended) - value[t]
        carry = delta + 0.99 * 0.95 * (1 - ended) * carry
        advantage[t] = carry
    return advantage


def train_minibatch(
    network: ActorCritic, optimizer: torch.optim.Optimizer, obs: Tensor, action: Tensor, *rest: Tensor
) -> None:
    log_prob, advantage, returns = rest
    policy, value = network(obs)
    ratio = (policy.log_prob(action) - log_prob).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    surrogate = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
    loss = surrogate - 0.01 * policy.entropy().mean() + 0.25 * (value - returns).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 0.5)
    optimizer.step()
