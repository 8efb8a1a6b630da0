"""Action masks: an invalid action has probability exactly 0, in acting, in targets and in evaluation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import MultiDiscrete

import gdi
from gdi import policy
from gdi.acting.player import Observed
from gdi.algorithms import Transitions, make_algorithm
from gdi.algorithms.dqn import DQN
from gdi.algorithms.dqn import Head as QHead
from gdi.algorithms.gdi import GDI
from gdi.algorithms.gdi import Head as GDIHead
from gdi.algorithms.softmax import Head as SoftmaxHead
from gdi.config import Config, DQNConfig, GDIConfig
from gdi.envs import make_env
from gdi.envs.actions import Actions
from gdi.errors import EnvironmentFaultError, UserError
from gdi.evaluation import Evaluator
from gdi.index_space import make_index_space
from gdi.networks import AgentOutput, Seen
from gdi.runtime.factories import make_player
from gdi.runtime.local import build
from helpers import change, make_actor
from masked_envs import ACTIONS, Masked

PRESETS = ("gdi-i3", "gdi-h3", "dqn", "ppo", "impala")
MASK = torch.tensor([True, False, True, False])
INDEX = {
    "gdi-i3": (2.0, 0.0, 0.5),
    "gdi-h3": (2.0, 0.0, 0.5),
    "dqn": (0.25,),
    "ppo": (1.0, 0.01),
    "impala": (1.0, 0.01),
}


def masked_config(preset: str, *, in_observation: bool = False, steps: int = 10**6) -> Config:
    config = gdi.make_config(preset, partial(Masked, in_observation=in_observation), steps=steps, seed=1)
    return replace(
        config,
        network=replace(config.network, hidden_units=16),
        evaluation=replace(config.evaluation, episodes=64),
        run=replace(config.run, threads=1, device="cpu", overlap=False),
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_no_invalid_action_is_taken_in_training_and_its_evaluation(preset: str) -> None:
    config = change(
        masked_config(preset, steps=4_000), **({"learn_start_transitions": 3_000} if preset == "dqn" else {})
    )
    system = build(config)
    Masked.invalid = Masked.steps = 0
    for _ in system.iterate(config.steps):
        pass
    trained = Masked.steps
    assert trained >= config.steps
    assert system.updates > 10
    assert system.evaluate(3)(lambda: False, True) is not None
    assert Masked.steps > trained
    assert Masked.invalid == 0
    system.close()


@pytest.mark.parametrize("preset", PRESETS)
def test_no_invalid_action_is_taken_in_a_hundred_thousand_steps(preset: str) -> None:
    """At any λ, and with a network whose values differ much."""
    config = masked_config(preset)
    env = make_env(config.env, 128)
    player = make_player(config, env.spec, 128, torch.device("cpu"))
    space = make_index_space(config.index_space)
    params = {name: 20 * value for name, value in player.network.state_dict().items()}
    Masked.invalid = Masked.steps = 0

    def propose(env: int, rng: np.random.Generator) -> tuple[float, ...]:
        return space.to_index([rng.uniform(axis.low, axis.high) for axis in space.axes]) if space.axes else space.base

    # 100,000 steps are 14,286 episodes of 7.
    evaluation = Evaluator(config.env, env, player).evaluate(params, propose, 14_286, seed=0)
    assert evaluation is not None
    assert evaluation.episodes == len(evaluation.returns) == 14_286
    assert Masked.steps >= 100_000
    assert Masked.invalid == 0
    env.close()


def head_of(preset: str, values: torch.Tensor) -> Any:
    """The head [T, 1, F, A] of a preset's algorithm with these numbers per action."""
    t = len(values)
    if preset == "dqn":
        return QHead(values.view(t, 1, 1, -1))
    if preset.startswith("gdi"):
        families = 2 if preset == "gdi-h3" else 1
        return GDIHead(values.view(t, 1, 1, -1).expand(t, 1, families, -1), torch.zeros(t, 1, families))
    return SoftmaxHead(values.view(t, 1, 1, -1), torch.zeros(t, 1, 1))


def seen_with(mask: torch.Tensor, index: tuple[float, ...], steps: int = 1) -> Seen:
    nothing = torch.zeros(steps, 1)
    lam = torch.tensor(index).expand(steps, 1, len(index))
    return Seen(nothing, nothing.bool(), nothing.long(), nothing, lam, torch.zeros(steps, 1, 0), mask)


def test_the_value_of_dqn_is_that_of_the_best_valid_action() -> None:
    head = head_of("dqn", torch.tensor([[1.0, 1e6, 2.0, -1e6]]))
    value = make_algorithm(masked_config("dqn")).value(head, seen_with(MASK.view(1, 1, 4), INDEX["dqn"]))
    assert value is not None
    assert value.tolist() == [[2.0]]


@pytest.mark.parametrize("preset", PRESETS)
def test_an_invalid_action_has_probability_exactly_0(preset: str) -> None:
    """Also if it has by far the largest value, and at an inverse temperature of 0, where −∞ · 0 would be NaN."""
    head = head_of(preset, torch.tensor([[1.0, 1e6, 2.0, -1e6]]))
    probs = make_algorithm(masked_config(preset)).log_probs(head, seen_with(MASK.view(1, 1, 4), INDEX[preset])).exp()
    assert probs[0, 0, 1] == probs[0, 0, 3] == 0
    assert probs.sum() == pytest.approx(1.0)
    assert (probs[0, 0, [0, 2]] > 0).all()


def test_the_probabilities_of_valid_actions_are_those_without_the_others() -> None:
    advantage = torch.tensor([[1.0, 7.0, 2.0, -3.0]])
    lam = torch.tensor([3.0, 0.5, 0.25])
    masked = policy.log_probs(advantage, lam, MASK).exp()
    alone = policy.log_probs(advantage[:, [0, 2]], lam).exp()
    torch.testing.assert_close(masked[[0, 2]], alone)
    # ε-greedy over the two valid actions: the better one has 1 − ε + ε/2, the other ε/2.
    dqn = DQN(DQNConfig()).log_probs(head_of("dqn", advantage), seen_with(MASK.view(1, 1, 4), (0.25,))).exp()
    torch.testing.assert_close(dqn[0, 0], torch.tensor([0.125, 0.0, 0.875, 0.0]))


def test_a_mask_of_width_0_changes_no_bit() -> None:
    advantage, lam = torch.randn(6, 1, 4), torch.rand(6, 3)
    everything = torch.ones(6, 4, dtype=torch.bool)
    assert torch.equal(policy.log_probs(advantage, lam), policy.log_probs(advantage, lam, torch.ones(6, 0).bool()))
    torch.testing.assert_close(policy.log_probs(advantage, lam), policy.log_probs(advantage, lam, everything))


def loss_and_gradient(preset: str, values: torch.Tensor) -> tuple[float, torch.Tensor]:
    """The loss on three steps whose valid actions are 0 and 2, and its gradient with respect to the head's numbers."""
    config = masked_config(preset)
    if preset == "dqn":
        return dqn_loss(values)
    values = values.clone().requires_grad_()
    head = head_of(preset, values)
    t = len(values) - 1
    data = Transitions(
        seen=seen_with(MASK.expand(t + 1, 1, 4), INDEX[preset], t + 1),
        action=torch.tensor([[0], [2], [0]]),
        reward=torch.tensor([[1.0], [0.0], [2.0]]),
        terminated=torch.tensor([[False], [False], [False]]),
        truncated=torch.zeros(t, 1, dtype=torch.bool),
        mask=torch.tensor([[True], [True], [False]]),
        behavior_prob=torch.full((t, 1), 0.5),
        extras={name: torch.tensor([[0.5], [-1.0], [0.0], [0.0]]) for name in ("value", "advantage", "value_target")},
    )
    loss = make_algorithm(config).loss(torch.nn.Module(), AgentOutput(head, [], torch.zeros(1)), data, health=True)  # type: ignore[arg-type]
    assert all(value.isfinite().all() for value in loss.metrics.values())
    loss.total.backward()
    assert values.grad is not None
    return loss.total.item(), values.grad


def dqn_loss(values: torch.Tensor) -> tuple[float, torch.Tensor]:
    """One transition: the online row is the first, and the target network's bootstrap row the last.

    Actions 0 and 2 are valid at the first, and actions 0 and 3 at the last.
    """
    rows = torch.stack([MASK, torch.tensor([True, False, False, True])]).unsqueeze(1)
    online = values[:1].clone().requires_grad_()
    data = Transitions(
        seen=seen_with(rows, (0.25,), 2),
        action=torch.tensor([[2]]),
        reward=torch.tensor([[1.0]]),
        terminated=torch.tensor([[False]]),
        truncated=torch.tensor([[False]]),
        mask=torch.tensor([[True]]),
        behavior_prob=torch.ones(1, 1),
        target=AgentOutput(head_of("dqn", values[-1:]), [], torch.zeros(1)),
    )
    config = DQNConfig(loss="squared", discount=0.5, n_steps=1)
    loss = DQN(config).loss(
        torch.nn.Module(), AgentOutput(head_of("dqn", online), [], torch.zeros(1)), data, health=True
    )  # type: ignore[arg-type]
    loss.total.backward()
    assert online.grad is not None
    return loss.total.item(), online.grad


def test_dqn_does_not_bootstrap_through_an_invalid_action() -> None:
    values = torch.tensor([[0.0, 0.0, 3.0, 0.0], [4.0, 1000.0, 1000.0, 2.0]])
    # y = 1 + 0.5 · max(4, 2) = 3, and Q(s, 2) = 3.
    assert dqn_loss(values)[0] == 0.0
    values[1, 0] = 6.0  # y = 1 + 0.5 · 6 = 4, and ½(4 − 3)² = 0.5
    assert dqn_loss(values)[0] == 0.5


@pytest.mark.parametrize("preset", PRESETS)
def test_losses_and_gradients_do_not_know_invalid_actions(preset: str) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(4, 4, generator=generator)
    loss, gradient = loss_and_gradient(preset, values)
    other = values.clone()
    other[:, [1, 3]] = torch.tensor([50.0, -700.0])
    if preset == "dqn":
        other[1:] = values[1:]  # its last row has other valid actions, see above
    changed, changed_gradient = loss_and_gradient(preset, other)
    assert np.isfinite(loss)
    assert changed == pytest.approx(loss, rel=1e-6)
    torch.testing.assert_close(gradient, changed_gradient)
    assert gradient.isfinite().all()
    assert (gradient[:, [1, 3]] == 0).all()
    assert (gradient[0, [0, 2]] != 0).any()


def test_q_with_gradient_is_finite_under_a_mask() -> None:
    config = replace(GDIConfig(), q_stop_gradient=False)
    head = head_of("gdi-i3", torch.randn(4, 4, requires_grad=True))
    data = Transitions(
        seen=seen_with(MASK.expand(4, 1, 4), INDEX["gdi-i3"], 4),
        action=torch.tensor([[0], [2], [0]]),
        reward=torch.ones(3, 1),
        terminated=torch.zeros(3, 1, dtype=torch.bool),
        truncated=torch.zeros(3, 1, dtype=torch.bool),
        mask=torch.ones(3, 1, dtype=torch.bool),
        behavior_prob=torch.full((3, 1), 0.5),
    )
    loss = GDI(config).estimates(head, data)
    (gradient,) = torch.autograd.grad(loss.q_taken.sum(), head.advantage)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("in_observation", [False, True])
def test_masks_of_info_and_of_an_observation_are_equal(in_observation: bool) -> None:
    env = make_env(masked_config("dqn", in_observation=in_observation).env, 3)
    env.reset(0)
    assert env.spec.has_mask
    assert env.spec.observation_shape == (8,)  # the mask is no part of the observation
    found = [env.beside.action_mask[0]]
    for _ in range(8):
        env.step(np.zeros(3, np.int64))
        found.append(env.beside.action_mask[0])
    # State 0 allows 0 and 1, state 4 allows 4 and 0. A terminal state, which allows nothing, is shown as all valid.
    np.testing.assert_array_equal(found[0], [True, True, False, False, False])
    np.testing.assert_array_equal(found[4], [True, False, False, False, True])
    assert found[7].all()
    np.testing.assert_array_equal(found[8], found[0])
    env.close()


def test_a_window_stores_the_mask_of_each_observation() -> None:
    config = change(masked_config("gdi-i3"), sequence_steps=10)
    config = replace(config, env=replace(config.env, num_envs=2))
    env = make_env(config.env)
    actor, _ = make_actor(env, config)
    window, _, _ = actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), 10**6)
    state = window.obs.argmax(-1)  # [11, 2]
    expected = np.zeros((11, 2, ACTIONS), bool)
    for i in (0, 1):
        np.put_along_axis(expected, (state[..., None] + i) % ACTIONS, True, -1)
    expected[state == 7] = True
    np.testing.assert_array_equal(window.action_mask, expected)
    assert (state == 7).any()
    taken = np.take_along_axis(window.action_mask[:-1], window.action[..., None], -1)[..., 0]
    assert taken[window.valid].all()


def test_a_state_without_a_valid_action_is_a_fault_unless_it_is_terminal() -> None:
    class Stuck(Masked):
        def _told(self) -> tuple[Any, dict[str, Any]]:
            told = super()._told()
            self._mask[self._clock == 3] = 0
            return told

    env = make_env(gdi.make_config("dqn", Stuck).env, 2)
    env.reset(0)
    env.step(np.zeros(2, np.int64))
    env.step(np.ones(2, np.int64))
    with pytest.raises(EnvironmentFaultError, match="allows no action in a state that is not terminal"):
        env.step(np.full(2, 2))


def test_masks_per_dimension_are_those_of_their_product() -> None:
    actions = Actions("test", MultiDiscrete([2, 3]))
    raw = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 0, 0]])
    # First row: both choices, times choices 1 and 2. Second row: choice 1, times choice 0.
    expected = [[False, True, True, False, True, True], [False, False, False, True, False, False]]
    np.testing.assert_array_equal(actions.mask(raw), expected)
    with pytest.raises(UserError, match="masks of 6 entries, and 5 are needed"):
        actions.mask(np.ones((1, 6)))


def test_an_algorithm_that_ignores_masks_is_stopped() -> None:
    config = masked_config("ppo")
    env = make_env(config.env, 2)
    obs = env.reset(0)
    player = make_player(config, env.spec, 2, torch.device("cpu"))
    player._algorithm.log_probs = lambda head, seen: torch.log_softmax(head.logits[:, :, 0], -1)  # type: ignore[method-assign]
    zeros = np.zeros(2)
    observed = Observed(obs, zeros > 0, zeros.astype(int), np.float32(zeros), np.ones((2, 2), np.float32), *env.beside)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="PPO gives an invalid action a probability above 0"):
        player.act(observed, torch.Generator())
