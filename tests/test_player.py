"""The one act of acting: actor, evaluator and agent do the same with the same θ, observations, λ and generator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from gdi.acting.actor import Actor
from gdi.acting.parameters import ParameterServer
from gdi.acting.player import Observed, Player
from gdi.agent import Agent
from gdi.algorithms import make_algorithm
from gdi.clock import Clock
from gdi.config import Config, FixedConfig
from gdi.envs import make_env
from gdi.envs.base import Beside, StepResult, VectorEnv
from gdi.envs.toy import make_toy
from gdi.evaluation import Evaluator
from gdi.networks import AgentNetwork
from gdi.types import Array, Index, State
from helpers import make_network, randomize_advantages, tiny_config, with_lstm

EPISODES, SEED = 4, 5
# What an evaluation makes of its seed, given to the other two as well.
ENV_SEED, _, ACTION_SEED = (int(s) for s in np.random.SeedSequence(SEED).generate_state(3))


def config_for(env: str, preset: str) -> Config:
    """Episodes of at most 9 steps, so that a few of them are soon over; an LSTM, so that all inputs matter."""
    config = with_lstm(tiny_config(env, preset, sequence_steps=5))
    return replace(config, env=replace(config.env, num_envs=1, max_episode_steps=9), controller=FixedConfig())


def network_for(config: Config, env: VectorEnv) -> AgentNetwork:
    network = make_network(config, env.spec.observation_shape, env.spec.num_actions, 0)
    randomize_advantages(network)
    return network


def player_for(config: Config, env: VectorEnv) -> Player:
    return Player(make_algorithm(config), network_for(config, env), env.num_envs, env.spec)


def lambdas() -> Iterator[Index]:
    """λ of the first episode, of the second, and so on: all different."""
    return ((0.5 + episode, 3.0 / (1 + episode), 0.9 - 0.1 * episode) for episode in range(2 * EPISODES))


@dataclass
class Watched:
    """An environment that notes every action it is given, and every frame it shows; and what the network said."""

    env: VectorEnv
    actions: list[int] = field(default_factory=list)
    shown: list[Array] = field(default_factory=list)
    ended: list[bool] = field(default_factory=list)
    said: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spec, self.num_envs = self.env.spec, self.env.num_envs

    @property
    def beside(self) -> Beside:
        return self.env.beside

    def reset(self, seed: int) -> Array:
        self.shown.append(self.env.reset(seed))
        return self.shown[-1]

    def step(self, action: Array) -> StepResult:
        step = self.env.step(action)
        self.actions.append(int(action[0]))
        self.shown.append(step.obs)
        self.ended.append(bool(step.terminated[0] | step.truncated[0]))
        return step

    def state_dict(self) -> State | None:
        return self.env.state_dict()

    def load_state_dict(self, state: State) -> Array:
        return self.env.load_state_dict(state)

    def close(self) -> None:
        self.env.close()

    def listen(self, player: Player) -> Player:
        player.network.register_forward_hook(
            lambda m, args, out: self.said.append(out.head.advantage.flatten().numpy())
        )
        return player


def watched(config: Config) -> Watched:
    return Watched(make_env(config.env, 1, threads=1))


def evaluated(config: Config) -> Watched:
    env, given = watched(config), lambdas()
    params = network_for(config, env).state_dict()
    evaluator = Evaluator(config.env, env, env.listen(player_for(config, env)))
    evaluator.evaluate(params, lambda i, rng: next(given), EPISODES, SEED)
    return env


def acted(config: Config, steps: int) -> Watched:
    env, given = watched(config), lambdas()
    actor = Actor(
        env,
        env.listen(player_for(config, env)),
        ParameterServer(dict(network_for(config, env).state_dict())),
        config.data,
        3,
        generator=torch.Generator().manual_seed(ACTION_SEED),
        env_seed=ENV_SEED,
        clock=Clock(),
    )
    while len(env.actions) < steps:
        actor.collect(lambda envs: [next(given) for _ in envs], 10**9)
    return env


def played(config: Config, steps: int) -> Watched:
    """The agent also acts on an episode's final observation, as the others do: the environment ignores that action."""
    env, given = watched(config), lambdas()
    system = {"steps": 0, "learner": {"network": network_for(config, env).state_dict()}, "controllers": {"0": {}}}
    agent = Agent(config, {"system": system})
    agent._generator.manual_seed(ACTION_SEED)
    env.listen(agent._player)
    frame, reward, starts, resets = env.reset(ENV_SEED), 0.0, True, False
    for _ in range(steps):
        if starts:
            agent.reset()
            agent.index = next(given)
        step = env.step(np.array([agent.act(frame[0], reward)]))
        frame, reward = step.obs, float(step.reward[0])
        starts, resets = resets, env.ended[-1]
    return env


@pytest.mark.parametrize(
    ("env_id", "preset"),
    [
        ("Toy/Counting-v0", "gdi-i3"),  # a reward at every step
        ("MinAtar/Breakout-v0", "gdi-i3"),
        ("MinAtar/SpaceInvaders-v0", "gdi-h3"),
        ("ALE/Breakout-v5", "gdi-i3"),  # four frames stacked
    ],
)
def test_actor_evaluator_and_agent_choose_equal_actions(env_id: str, preset: str) -> None:
    """At every step of several episodes, each with its own λ; and so do the networks, bit by bit."""
    config = config_for(env_id, preset)
    one = evaluated(config)
    steps = len(one.actions)
    assert sum(one.ended) == EPISODES
    assert len(set(one.actions)) > 1
    for other in (acted(config, steps), played(config, steps)):
        assert other.actions[:steps] == one.actions
        np.testing.assert_array_equal(other.shown[: steps + 1], one.shown)
        np.testing.assert_array_equal(other.said[:steps], one.said)
        other.close()
    one.close()


def observed(env: VectorEnv, index: Index, *, start: bool = False) -> Observed:
    n = env.num_envs
    return Observed(
        obs=np.ones((n, *env.spec.frame_shape), env.spec.observation_dtype),
        episode_start=np.full(n, start),
        previous_action=np.ones(n, np.int64),
        previous_reward=np.ones(n, np.float32),
        index=np.tile(np.float32(index), (n, 1)),
        vector=env.beside.vector,
        action_mask=env.beside.action_mask,
    )


def test_a_player_that_begins_anew_acts_as_a_new_one() -> None:
    config, env = with_lstm(tiny_config("Toy/Counting-v0")), make_toy("Toy/Counting-v0", 64)
    used, new = player_for(config, env), player_for(config, env)
    for _ in range(3):
        used.act(observed(env, (1.0, 2.0, 0.5)), torch.Generator().manual_seed(0))
    assert used.state.abs().sum() > 0
    used.begin()
    assert torch.equal(used.state, torch.zeros_like(new.state))
    one, two = (p.act(observed(env, (1.0, 2.0, 0.5)), torch.Generator().manual_seed(1)) for p in (used, new))
    np.testing.assert_array_equal(one.action, two.action)
    np.testing.assert_array_equal(one.prob, two.prob)


def test_a_player_continues_from_a_state_that_it_loads() -> None:
    config, env = with_lstm(tiny_config("Toy/Counting-v0")), make_toy("Toy/Counting-v0", 64)
    first, second = player_for(config, env), player_for(config, env)
    first.act(observed(env, (1.0, 2.0, 0.5), start=True), torch.Generator().manual_seed(0))
    second.load_state(first.state.clone())
    one, two = (p.act(observed(env, (1.0, 2.0, 0.5)), torch.Generator().manual_seed(1)) for p in (first, second))
    np.testing.assert_array_equal(one.prob, two.prob)
    assert torch.equal(first.state, second.state)


def test_each_environment_acts_under_its_own_lambda() -> None:
    """1/τ = 0 is uniform over 2 actions: every probability is 1/2. With ε = 1 the second component has no weight."""
    config, env = tiny_config("Toy/Counting-v0"), make_toy("Toy/Counting-v0", 6)
    what = observed(env, (0.0, 7.0, 1.0), start=True)
    what.index[3:] = (9.0, 0.0, 1.0)
    prob = player_for(config, env).act(what, torch.Generator().manual_seed(0)).prob
    assert prob[:3].tolist() == pytest.approx([0.5] * 3)
    assert (abs(prob[3:] - 0.5) > 0.01).all()
