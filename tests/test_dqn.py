"""DQN: targets by hand, a chain whose Q* is known, and a target network that is exactly an old network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gdi.algorithms import Transitions
from gdi.algorithms.dqn import DQN, Head, n_step
from gdi.config import Config, DQNConfig, EpsilonSpace, SampledReplayConfig
from gdi.learner import Learner
from gdi.networks import AgentOutput, Seen
from gdi.presets import make_config
from gdi.runtime.local import build
from gdi.types import Window, window_from
from helpers import make_network, seen_of

GAMMA = 0.9


def column(*values: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)[:, None]


def flags(*values: int) -> Tensor:
    return column(*values, dtype=torch.bool)


@pytest.mark.parametrize(
    ("terminated", "truncated", "returns", "discount", "row"),
    [
        ((0, 0, 0), (0, 0, 0), 1 + 0.9 * 2 + 0.81 * 4, 0.729, 3),
        ((0, 1, 0), (0, 0, 0), 1 + 0.9 * 2, 0.0, 2),
        ((0, 0, 0), (0, 1, 0), 1 + 0.9 * 2, 0.81, 2),
        ((0, 0, 0), (1, 0, 0), 1.0, 0.9, 1),
        ((0, 0, 1), (0, 0, 0), 1 + 0.9 * 2 + 0.81 * 4, 0.0, 3),
        ((1, 0, 0), (0, 0, 0), 1.0, 0.0, 1),
    ],
)
def test_n_step_returns_by_hand(terminated: Any, truncated: Any, returns: float, discount: float, row: int) -> None:
    """Rewards 1, 2, 4: a termination ends the sum, a truncation bootstraps at its own row."""
    found = n_step(column(1, 2, 4), flags(*terminated), flags(*truncated), GAMMA)
    assert found.returns.item() == pytest.approx(returns)
    assert found.discount.item() == pytest.approx(discount)
    assert found.row.item() == row


def acted(epsilon: float, actions: int = 4) -> Seen:
    nothing = torch.zeros(1, 1)
    return seen_of(nothing, nothing, nothing, nothing, torch.full((1, 1, 1), epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_the_policy_is_epsilon_greedy(epsilon: float) -> None:
    head = Head(torch.tensor([0.3, 2.0, -1.0, 1.9]).view(1, 1, 1, 4))
    probs = DQN(DQNConfig()).log_probs(head, acted(epsilon)).exp()[0, 0]
    expected = np.full(4, epsilon / 4)
    expected[1] += 1 - epsilon
    np.testing.assert_allclose(probs.numpy(), expected, atol=1e-6)


def test_a_broken_q_is_reported() -> None:
    head = Head(torch.tensor([0.3, float("nan"), -1.0, 1.9]).view(1, 1, 1, 4))
    assert DQN(DQNConfig()).log_probs(head, acted(0.5)).isnan().all()


def loss_of(config: DQNConfig, q: Tensor, target_q: Tensor, reward: float, terminated: bool, truncated: bool) -> float:
    data = Transitions(
        seen=seen_of(*[torch.zeros(2, 1)] * 4, torch.zeros(2, 1, 1)),
        action=column(1, dtype=torch.int64),
        reward=column(reward),
        terminated=flags(terminated),
        truncated=flags(truncated),
        mask=flags(1),
        behavior_prob=column(1.0),
        target=AgentOutput(Head(target_q.view(1, 1, 1, -1)), [], torch.zeros(1)),
    )
    online = AgentOutput(Head(q.view(1, 1, 1, -1)), [], torch.zeros(1))
    return DQN(config).loss(None, online, data, health=True).total.item()  # type: ignore[arg-type]


@pytest.mark.parametrize(("loss", "clip"), [("squared", 0.0), ("huber", 1.0)])
def test_the_loss_by_hand_at_ordinary_terminated_and_truncated_steps(loss: Any, clip: float) -> None:
    config = DQNConfig(discount=GAMMA, loss=loss, reward_clip=clip)
    q, target = torch.tensor([5.0, 2.0]), torch.tensor([3.0, 4.0])
    reward = clip or 1.5
    for terminated, truncated in ((False, False), (True, False), (False, True)):
        y = reward + (0.0 if terminated else GAMMA * 4.0)
        error = abs(y - 2.0)
        expected = 0.5 * error**2 if loss == "squared" or error <= 1 else error - 0.5
        assert loss_of(config, q, target, 1.5, terminated, truncated) == pytest.approx(expected, rel=1e-5)


def dqn_config(**learner: Any) -> Config:
    config = make_config("dqn", "Toy/Chain-v0", steps=10_000)
    return replace(config, learner=replace(config.learner, **learner), network=replace(config.network, hidden_units=8))


def batch_of(obs: np.ndarray, **fields: np.ndarray) -> Window:
    """Slices of T transitions: obs is [T + 1, B, features]."""
    rows, n = obs.shape[:2]
    steps = rows - 1
    defaults = {
        "episode_start": np.zeros((rows, n), bool),
        "previous_action": np.zeros((rows, n), np.int64),
        "previous_reward": np.zeros((rows, n), np.float32),
        "index": np.full((rows, n, 1), 0.1, np.float32),
        "action": np.zeros((steps, n), np.int64),
        "reward": np.zeros((steps, n), np.float32),
        "terminated": np.zeros((steps, n), bool),
        "truncated": np.zeros((steps, n), bool),
        "valid": np.ones((steps, n), bool),
        "behavior_prob": np.ones((steps, n), np.float32),
        "version": np.zeros((steps, n), np.int64),
        "state": np.zeros((n, 1, 0), np.float32),
    }
    return window_from({"obs": obs.astype(np.float32), **defaults, **fields})


def test_after_k_updates_the_target_is_the_network_of_the_last_whole_period() -> None:
    config, period = dqn_config(target_period_updates=3), 3
    algorithm = DQN(config.learner)  # type: ignore[arg-type]
    network = make_network(config, (4,), 2, 0)
    learner = Learner(network, algorithm, config, torch.device("cpu"))
    rng = np.random.default_rng(0)
    history = [learner.parameters()]
    for k in range(1, 11):
        learner.update(batch_of(rng.standard_normal((2, 5, 4)), reward=rng.standard_normal((1, 5)).astype(np.float32)))
        history.append(learner.parameters())
        target = learner.state_dict()["target"]
        for name, value in history[k // period * period].items():
            assert torch.equal(target[name], value), (k, name)
        assert any(not torch.equal(history[k][name], history[k - 1][name]) for name in history[k])
    again = Learner(make_network(config, (4,), 2, 1), algorithm, config, torch.device("cpu"))
    again.load_state_dict(learner.state_dict())
    for name, value in learner.state_dict()["target"].items():
        assert torch.equal(again.state_dict()["target"][name], value)


class Table(nn.Module):
    """Tabular features: the torso is the identity on one-hot states."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_two_state_chain_converges_to_its_known_q() -> None:
    """State 0: action 0 stays (reward 0), action 1 goes to state 1 (reward 1). State 1: action 0 ends with reward 2,
    action 1 returns to state 0 (reward 0). Round and round is best: V0 = 1 + γ²·V0."""
    config = dqn_config(target_period_updates=20, discount=GAMMA, loss="squared", reward_clip=0.0)
    rate = replace(config.optimizer, learning_rate=0.05, adam_epsilon=0.1, clip_norm=100.0)
    config = replace(config, optimizer=rate, network=replace(config.network, hidden_units=2))
    network = make_network(config, (2,), 2, 0)
    network.encoders[0].torso = Table()  # type: ignore[union-attr]
    learner = Learner(network, DQN(config.learner), config, torch.device("cpu"))  # type: ignore[arg-type]
    states = np.eye(2)
    now = states[[0, 0, 1, 1]]
    after = states[[0, 1, 1, 0]]
    batch = batch_of(
        np.stack([now, after]),
        action=np.array([[0, 1, 0, 1]]),
        reward=np.array([[0, 1, 2, 0]], np.float32),
        terminated=np.array([[False, False, True, False]]),
    )
    for _ in range(6000):
        learner.update(batch)
    q = network.heads[0].q  # type: ignore[union-attr]
    found = q.weight.detach().numpy().T + q.bias.detach().numpy()
    v0 = 1 / (1 - GAMMA**2)
    np.testing.assert_allclose(found, [[GAMMA * v0, v0], [2.0, GAMMA * v0]], atol=1e-3)


def test_the_rows_after_the_first_are_looked_at_and_not_trained() -> None:
    """Rewards of the look-ahead rows count in the target of the first row; their actions do not matter."""
    data = SampledReplayConfig(slice_steps=3, capacity_transitions=1000)
    config = replace(dqn_config(n_steps=3), data=data, index_space=EpsilonSpace())
    learner = Learner(make_network(config, (4,), 2, 0), DQN(config.learner), config, torch.device("cpu"))  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    n, t = 6, 3
    fields = {
        "episode_start": np.zeros((t + 1, n), bool), "previous_action": np.zeros((t + 1, n), np.int64),
        "previous_reward": np.zeros((t + 1, n), np.float32), "index": np.zeros((t + 1, n, 1), np.float32),
        "action": rng.integers(2, size=(t, n)), "reward": rng.standard_normal((t, n)).astype(np.float32),
        "terminated": np.zeros((t, n), bool), "truncated": np.zeros((t, n), bool), "valid": np.ones((t, n), bool),
        "behavior_prob": np.ones((t, n), np.float32), "version": np.zeros((t, n), np.int64),
        "state": np.zeros((n, 1, 0), np.float32), "obs": rng.standard_normal((t + 1, n, 4)).astype(np.float32),
    }  # fmt: skip

    def gradient(**changes: np.ndarray) -> list[np.ndarray]:
        learner._accumulate_gradient(window_from({**fields, **changes}))
        return [p.grad.numpy().copy() for p in learner.network.parameters() if p.grad is not None]

    base = gradient()
    other_actions = fields["action"].copy()
    other_actions[1:] = 1 - other_actions[1:]
    for a, b in zip(base, gradient(action=other_actions), strict=True):
        np.testing.assert_array_equal(a, b)
    more = fields["reward"].copy()
    more[2] += 1
    assert any(not np.array_equal(a, b) for a, b in zip(base, gradient(reward=more), strict=True))


def test_chunks_of_n_step_slices_have_the_gradient_of_the_whole_and_count_first_rows() -> None:
    """Half of the slices end in their first row, so that their other rows are no transitions."""
    data = SampledReplayConfig(slice_steps=3, capacity_transitions=1000)
    config = replace(dqn_config(n_steps=3), data=data, index_space=EpsilonSpace())
    rng = np.random.default_rng(1)
    n, t = 8, 3
    truncated, valid = np.zeros((t, n), bool), np.ones((t, n), bool)
    truncated[0, :4], valid[1:, :4] = True, False
    batch = batch_of(
        rng.standard_normal((t + 1, n, 4)),
        action=rng.integers(2, size=(t, n)),
        reward=rng.standard_normal((t, n)).astype(np.float32),
        truncated=truncated,
        valid=valid,
    )
    found = []
    for chunk in (0, 2, 4):
        learner = Learner(
            make_network(config, (4,), 2, 0),
            DQN(config.learner),
            config,
            torch.device("cpu"),
            chunk,  # type: ignore[arg-type]
        )
        metrics, count = learner._accumulate_gradient(batch)
        assert count == n
        found.append((metrics["loss/td"], torch.cat([p.grad.flatten() for p in learner.network.parameters()])))
    for loss, gradient in found[1:]:
        assert loss == pytest.approx(found[0][0])
        torch.testing.assert_close(gradient, found[0][1])


@pytest.mark.parametrize("n_steps", [1, 3])
def test_the_last_update_completes_the_progress(n_steps: int) -> None:
    config = make_config("dqn", "Toy/Chain-v0", steps=600)
    data = replace(config.data, slice_steps=n_steps, learn_start_transitions=100)
    config = replace(config, data=data, learner=replace(config.learner, n_steps=n_steps))
    system = build(config)
    for _ in system.iterate(config.steps):
        pass
    assert system.parts.learner.progress == 1.0
    assert system.parts.learner.trained_transitions == system.updates * config.data.batch_size_sequences
    system.close()


def test_the_schedule_is_linear_in_transitions_and_saved() -> None:
    from gdi.config import ScheduleConfig
    from gdi.controller import make_controller

    config = replace(dqn_config(), controller=ScheduleConfig(start=1.0, end=0.2, over_steps=100, evaluation=0.03))
    controller = make_controller(config)
    assert controller.propose([0, 1]) == [(1.0,), (1.0,)]
    controller.observe([], 25)
    assert controller.propose([4]) == [(pytest.approx(0.8),)]
    other = make_controller(config)
    other.load_state_dict(controller.state_dict())
    for each in (controller, other):
        each.observe([], 25)
        assert each.propose([0]) == [(pytest.approx(0.6),)]
        each.observe([], 1000)
        assert each.propose([0]) == [(pytest.approx(0.2),)]
        assert each.propose_best(0, np.random.default_rng(0)) == (0.03,)
