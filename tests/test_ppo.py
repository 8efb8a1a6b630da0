"""PPO: advantages by hand, a clip that is pessimistic, A2C's gradient as a special case, and V as acted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gdi.algorithms import Transitions
from gdi.algorithms.ppo import PPO, clipped_surrogate, gae
from gdi.algorithms.softmax import Head, log_probs
from gdi.config import PPOConfig
from gdi.envs import make_env
from gdi.learner import Learner
from gdi.networks import AgentOutput
from gdi.presets import make_config
from gdi.types import Window, column_slice
from helpers import change, make_actor, make_network, seen_of, with_lstm


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


NO = column(0, 0, 0) > 0


def ends(terminated: np.ndarray = NO, truncated: np.ndarray = NO) -> Any:
    """The part of a window that advantages depend on."""
    valid = np.ones_like(terminated)
    valid[1:] = ~(terminated | truncated)[:-1]
    return SimpleNamespace(terminated=terminated, truncated=truncated, valid=valid)


def test_advantages_by_hand() -> None:
    """r = (1, 0, 2), V = (.5, .4, .3, .2), γ = .9, λ = .8: δ = (.86, −.13, 1.88)."""
    found = gae(column(0.5, 0.4, 0.3, 0.2), ends(), column(1, 0, 2), 0.9, 0.8)
    np.testing.assert_allclose(found[:, 0], [1.740992, 1.2236, 1.88], atol=1e-12)


def test_a_termination_drops_the_bootstrap_and_a_truncation_keeps_it() -> None:
    value, reward, end = column(0.5, 0.4, 0.3, 0.2), column(1, 0, 2), column(0, 1, 0) > 0
    terminated = gae(value, ends(terminated=end), reward, 0.9, 0.8)[:, 0]
    truncated = gae(value, ends(truncated=end), reward, 0.9, 0.8)[:, 0]
    np.testing.assert_allclose(terminated, [0.86 + 0.72 * -0.4, -0.4, 1.88], atol=1e-12)
    np.testing.assert_allclose(truncated, [0.86 + 0.72 * -0.13, -0.13, 1.88], atol=1e-12)


def test_a_truncated_episode_of_one_step_has_the_target_r_plus_gamma_v() -> None:
    found = gae(column(0.5, 0.7), ends(column(0) > 0, column(1) > 0), column(3.0), 0.9, 0.8)
    assert found[0, 0] + 0.5 == pytest.approx(3.0 + 0.9 * 0.7)


@pytest.mark.parametrize(
    ("ratio", "advantage", "has_gradient"),
    [(1.3, 1.0, False), (1.3, -1.0, True), (0.7, -1.0, False), (0.7, 1.0, True), (1.1, 1.0, True), (0.9, -1.0, True)],
)
def test_the_clip_stops_the_gradient_on_the_pessimistic_side_only(
    ratio: float, advantage: float, has_gradient: bool
) -> None:
    rho = torch.tensor(ratio, requires_grad=True)
    clipped_surrogate(rho, torch.tensor(advantage), 0.2).backward()
    assert (rho.grad.item() != 0) is has_gradient  # type: ignore[union-attr]


def small_ppo(env: str = "MinAtar/Breakout-v0", **settings: Any) -> Any:
    config = make_config("ppo", env, steps=4000, seed=3)
    config = replace(
        config,
        env=replace(config.env, num_envs=6),
        network=replace(config.network, hidden_units=16),
        run=replace(config.run, threads=1),
    )
    return change(config, **{"sequence_steps": 8, "batch_size_sequences": 48, "replay": 1, **settings})


def test_one_epoch_in_one_minibatch_has_a2cs_gradient() -> None:
    """At θ of acting every ratio is 1: the surrogate's gradient is −Â∇log π."""
    config = small_ppo(normalize_advantages=False, clip_norm=1e9)
    with_env = make_env(config.env, threads=1)
    actor, network = make_actor(with_env, config)
    window = actor.collect(lambda envs: [(1.0, 0.01)] * len(envs), 10**9)[0]
    learner = Learner(network, PPO(config.learner, by_transition=False), config, torch.device("cpu"))
    learner._accumulate_gradient(window)
    found = [p.grad.clone() for p in network.parameters() if p.grad is not None]
    seen = learner._seen(window)
    output = network(seen, torch.from_numpy(window.state))
    steps = len(window.action)
    log_pi = log_probs(output.head, seen)[:steps]
    taken = log_pi.gather(-1, torch.from_numpy(window.action)[..., None])[..., 0]
    mask = torch.from_numpy(window.valid).float()
    value = output.head.value[:steps, :, 0]
    advantage = torch.from_numpy(window.extras["advantage"][:-1])
    target = advantage + torch.from_numpy(window.extras["value"][:-1])
    entropy = -(log_pi.exp() * log_pi).sum(-1)
    weight = config.learner.value_loss_scale
    per_step = -advantage * taken + weight * 0.5 * (target - value).pow(2) - 0.01 * entropy
    expected = torch.autograd.grad((per_step * mask).sum() / mask.sum(), list(network.parameters()))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)
    with_env.close()


@pytest.mark.parametrize("lstm", [0, 8])
def test_v_is_recorded_as_acted_and_the_row_after_the_window_by_a_look_ahead(lstm: int) -> None:
    """The peeked row equals the next window's first row, and the look changes nothing that follows."""
    config = small_ppo(slice_steps=0 if lstm else 1, batch_size_sequences=6)
    config = with_lstm(config, lstm) if lstm else config
    env = make_env(config.env, threads=1)
    actor, network = make_actor(env, config)
    propose = lambda envs: [(1.0, 0.01)] * len(envs)  # noqa: E731
    one, two = (actor.collect(propose, 10**9)[0] for _ in range(2))
    np.testing.assert_allclose(one.extras["value"][-1], two.extras["value"][0], rtol=1e-5, atol=1e-6)
    learner = Learner(network, PPO(config.learner, by_transition=not lstm), config, torch.device("cpu"))
    for window in (one, two):
        with torch.no_grad():
            value = network(learner._seen(window), torch.from_numpy(window.state)).head.value[..., 0]
        np.testing.assert_allclose(window.extras["value"], value.numpy(), rtol=1e-4, atol=1e-5)
    env.close()


def test_a_window_cut_by_the_budget_bootstraps_at_its_last_row() -> None:
    config = small_ppo()
    env = make_env(config.env, threads=1)
    actor, _ = make_actor(env, config)
    window = actor.collect(lambda envs: [(1.0, 0.01)] * len(envs), 20)[0]
    rows = int(window.valid.any(1).sum())
    assert rows < len(window.action)
    assert (window.extras["value"][rows] != 0).all()
    last = window.extras["advantage"][rows - 1]
    delta = window.reward[rows - 1] + 0.99 * window.extras["value"][rows] * ~window.terminated[rows - 1]
    np.testing.assert_allclose(last, delta - window.extras["value"][rows - 1], rtol=1e-5, atol=1e-6)
    env.close()


def test_advantages_are_standardized_over_the_trained_steps_of_the_minibatch() -> None:
    config = small_ppo()
    env = make_env(config.env, threads=1)
    actor, _ = make_actor(env, config)
    windows = [actor.collect(lambda envs: [(1.0, 0.01)] * len(envs), 10**9)[0] for _ in range(6)]
    window = next(window for window in windows if not window.valid.all())
    prepared = PPO(config.learner, by_transition=True).prepare(window)
    trained = prepared.extras["advantage"][:-1][window.valid]
    assert trained.mean() == pytest.approx(0, abs=1e-5)
    assert trained.std(ddof=1) == pytest.approx(1, abs=1e-4)
    plain = window.extras["advantage"] + window.extras["value"]
    np.testing.assert_allclose(prepared.extras["value_target"], plain, rtol=1e-6)
    env.close()


def test_chunks_of_a_minibatch_have_the_gradient_of_the_whole() -> None:
    config = small_ppo(clip_norm=1e9)
    env = make_env(config.env, threads=1)
    actor, network = make_actor(env, config)
    window = actor.collect(lambda envs: [(1.0, 0.01)] * len(envs), 10**9)[0]
    gradients = []
    for chunk in (0, 4):
        learner = Learner(network, PPO(config.learner, by_transition=False), config, torch.device("cpu"), chunk)
        learner._accumulate_gradient(window)
        gradients.append([p.grad.clone() for p in network.parameters() if p.grad is not None])
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    env.close()


def test_slices_of_one_step_are_the_steps_of_the_window_each_once_per_epoch() -> None:
    from gdi.data import make_replay, make_store

    config = small_ppo(batch_size_sequences=12, replay=2)
    env = make_env(config.env, threads=1)
    actor, _ = make_actor(env, config)
    window = actor.collect(lambda envs: [(1.0, 0.01)] * len(envs), 10**9)[0]
    replay, store = make_replay(config), make_store(config)
    store.put(replay.add(window), window)
    draws = replay.due(last=False)
    assert len(draws) == 2 * 48 // 12
    for epoch in range(2):
        batches = [store.gather(draws, epoch * 4 + number) for number in range(4)]
        values = np.concatenate([batch.extras["value"][0] for batch in batches])  # type: ignore[union-attr]
        np.testing.assert_array_equal(np.sort(values), np.sort(window.extras["value"][:-1].ravel()))
    order = [np.concatenate([draws.start[draws.part(4 * e + i)] for i in range(4)]) for e in range(2)]
    assert not np.array_equal(*order)
    env.close()


def test_the_value_clip_keeps_v_near_the_v_that_acted() -> None:
    plain, clipped = (PPO(PPOConfig(value_clip=clip), by_transition=True)._value_loss for clip in (0.0, 0.1))
    value, old, target = torch.tensor([1.0, 0.05]), torch.zeros(2), torch.tensor([2.0, 2.0])
    torch.testing.assert_close(plain(value, old, target), torch.tensor([0.5, 0.5 * 1.95**2]))
    torch.testing.assert_close(clipped(value, old, target), torch.tensor([0.5 * 1.9**2, 0.5 * 1.95**2]))


@pytest.mark.parametrize("inverse_tau", [1.0, 300.0])
def test_log_probabilities_are_finite_at_any_temperature(inverse_tau: float) -> None:
    head = Head(torch.tensor([5.0, -5.0, 0.0]).view(1, 1, 1, 3), torch.zeros(1, 1, 1))
    seen = seen_of(*[torch.zeros(1, 1)] * 4, torch.tensor([inverse_tau, 0.01]).view(1, 1, 2))
    assert log_probs(head, seen).isfinite().all()


def test_a_step_that_is_no_transition_has_no_gradient() -> None:
    """Its stored probability may be anything."""
    config = PPOConfig()
    logits = torch.randn(2, 1, 1, 3, requires_grad=True)
    value = torch.zeros(2, 1, 1, requires_grad=True)
    data = Transitions(
        seen=seen_of(*[torch.zeros(2, 1)] * 4, torch.tensor([1.0, 0.01]).expand(2, 1, 2)),
        action=torch.zeros(1, 1, dtype=torch.int64),
        reward=torch.zeros(1, 1),
        terminated=torch.zeros(1, 1, dtype=torch.bool),
        truncated=torch.zeros(1, 1, dtype=torch.bool),
        mask=torch.zeros(1, 1, dtype=torch.bool),
        behavior_prob=torch.full((1, 1), 1e-38),
        extras={name: torch.ones(2, 1) for name in ("advantage", "value", "value_target")},
    )
    online = AgentOutput(Head(logits, value), [], torch.zeros(1))
    loss = PPO(config, by_transition=True).loss(None, online, data, health=True)  # type: ignore[arg-type]
    loss.total.backward()
    assert loss.total.item() == 0.0
    assert not logits.grad.any()  # type: ignore[union-attr]


def test_columns_keep_their_extras() -> None:
    config = small_ppo()
    env = make_env(config.env, threads=1)
    actor, _ = make_actor(env, config)
    window: Window = actor.collect(lambda envs: [(1.0, 0.01)] * len(envs), 10**9)[0]
    part = column_slice(window, 2, 4)
    np.testing.assert_array_equal(part.extras["advantage"], window.extras["advantage"][:, 2:4])
    assert make_network(config, env.spec.observation_shape, env.spec.num_actions, 0) is not None
    env.close()
