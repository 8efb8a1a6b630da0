"""IMPALA: summed losses in chunks, V-trace targets, and ratios of 1 when θ that acted is θ that learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gdi.algorithms.impala import IMPALA
from gdi.config import RMSPropConfig
from gdi.envs import make_env
from gdi.learner import Learner
from gdi.learner.rmsprop import RMSProp
from gdi.presets import make_config
from helpers import change, make_actor


def small_impala(**settings: Any) -> Any:
    config = make_config("impala", "MinAtar/Breakout-v0", steps=4000, seed=3)
    config = replace(
        config,
        env=replace(config.env, num_envs=6),
        network=replace(config.network, hidden_units=16),
        run=replace(config.run, threads=1),
    )
    return change(config, **{"sequence_steps": 8, "batch_size_sequences": 6, "clip_norm": 1e9, **settings})


def window_and_network(config: Any) -> Any:
    env = make_env(config.env, threads=1)
    actor, network = make_actor(env, config)
    window = [actor.collect(lambda envs: [(2.0, 0.01)] * len(envs), 10**9)[0] for _ in range(3)][-1]
    env.close()
    return window, network


def gradients(config: Any, network: Any, window: Any, chunk: int = 0) -> tuple[list[torch.Tensor], dict[str, float]]:
    learner = Learner(network, IMPALA(config.learner), config, torch.device("cpu"), chunk)
    metrics, _ = learner._accumulate_gradient(window)
    return [p.grad.clone() for p in network.parameters() if p.grad is not None], metrics


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_chunks_have_the_gradient_of_the_whole(reduction: str) -> None:
    config = small_impala(reduction=reduction)
    window, network = window_and_network(config)
    whole, in_chunks = gradients(config, network, window), gradients(config, network, window, 2)
    for a, b in zip(whole[0], in_chunks[0], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert whole[1]["loss/total"] == pytest.approx(in_chunks[1]["loss/total"], rel=1e-4, abs=1e-6)


def test_the_sum_is_the_mean_times_the_trained_steps() -> None:
    config = small_impala()
    window, network = window_and_network(config)
    summed, _ = gradients(config, network, window)
    mean, _ = gradients(change(config, reduction="mean"), network, window)
    for a, b in zip(summed, mean, strict=True):
        torch.testing.assert_close(a, b * int(window.valid.sum()), rtol=1e-4, atol=1e-5)


def test_at_lag_0_every_ratio_is_1() -> None:
    config = small_impala()
    window, network = window_and_network(config)
    _, metrics = gradients(config, network, window)
    assert metrics["policy/ratio_mean"] == pytest.approx(1.0, abs=1e-5)
    window.behavior_prob[:] *= 0.5  # as if another policy had acted
    assert gradients(config, network, window)[1]["policy/ratio_mean"] == pytest.approx(2.0, abs=1e-5)


def test_the_loss_by_hand_on_policy() -> None:
    """With ρ = c = 1 the targets are n-step returns; the gradient follows r + γv' − V with v', not V'."""
    config = small_impala(reduction="mean", value_loss_scale=0.5)
    window, network = window_and_network(config)
    learner = Learner(network, IMPALA(config.learner), config, torch.device("cpu"))
    with torch.no_grad():
        output = network(learner._seen(window), torch.from_numpy(window.state))
    value = output.head.value[..., 0].numpy()
    mask = window.valid
    target = value.copy()
    for t in reversed(range(len(mask))):
        bootstrap = 0.99 * target[t + 1] * ~window.terminated[t]
        target[t] = np.where(mask[t], window.reward[t] + bootstrap, value[t])
    gain = np.where(mask, window.reward + 0.99 * target[1:] * ~window.terminated - value[:-1], 0.0)
    log_pi = torch.log_softmax(output.head.logits[:-1, :, 0] * 2.0, -1).numpy()
    taken = np.take_along_axis(log_pi, window.action[..., None], -1)[..., 0]
    count = mask.sum()
    policy_loss = (-gain * taken * mask).sum() / count
    value_loss = (0.5 * (target[:-1] - value[:-1]) ** 2 * mask).sum() / count
    bonus = 0.01 * (-(np.exp(log_pi) * log_pi).sum(-1) * mask).sum() / count
    _, metrics = gradients(config, network, window)
    assert metrics["loss/policy"] == pytest.approx(policy_loss, rel=1e-3, abs=1e-5)
    assert metrics["loss/v"] == pytest.approx(value_loss, rel=1e-3, abs=1e-6)
    assert metrics["loss/entropy_bonus"] == pytest.approx(bonus, rel=1e-3)
    assert metrics["loss/total"] == pytest.approx(policy_loss + 0.5 * value_loss - bonus, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(("centered", "momentum"), [(False, 0.0), (True, 0.0), (True, 0.9)])
def test_rmsprop_by_hand(centered: bool, momentum: float) -> None:
    config = RMSPropConfig(learning_rate=0.1, decay=0.9, epsilon=0.01, centered=centered, momentum=momentum)
    parameter = torch.tensor([1.0, -2.0], requires_grad=True)
    rule = RMSProp([{"params": [parameter]}], config)
    theta, square, mean, step = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2), np.zeros(2)
    for number in range(4):
        gradient = np.array([0.5 + number, -1.0])
        parameter.grad = torch.tensor(gradient, dtype=torch.float32)
        rule.step()
        square = 0.9 * square + 0.1 * gradient**2
        mean = 0.9 * mean + 0.1 * gradient if centered else mean
        step = momentum * step + 0.1 * gradient / np.sqrt(square - mean**2 + 0.01)
        theta = theta - step
        np.testing.assert_allclose(parameter.detach().numpy(), theta, rtol=1e-5)
