"""The Ray runtime in lockstep is the local run, bit by bit; and two learners are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdi
from gdi.config import Config
from helpers import read_metric_lines, saved_network, tiny_config, with_lstm
from ray_runs import LOCKSTEP, newest
from systems import small, with_e

pytest.importorskip("ray")
pytestmark = pytest.mark.ray


def without_ray(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if not name.startswith("ray/")} for line in lines]


def atari_config() -> Config:
    config = gdi.make_config("gdi-i3", "pong", scale="atari-cpu", steps=2 * 8 * 10, seed=3)
    return replace(
        config,
        env=replace(config.env, num_envs=2, max_episode_steps=12),  # cut, so that episodes end within the test
        network=replace(config.network, hidden_units=16, lstm_units=8),
        data=replace(config.data, batch_size_sequences=2, sequence_steps=8, replay=2, replay_span_windows=2),
        optimizer=replace(config.optimizer, warmup_updates=2),
        evaluation=replace(config.evaluation, every_steps=80, episodes=2),
        run=replace(config.run, log_every_steps=50, checkpoint_every_steps=50, threads=1, device="cpu"),
    )


def often(config: Config) -> Config:
    """Logs, saves and evaluates on the way, too."""
    return replace(
        config,
        evaluation=replace(config.evaluation, every_steps=200),
        run=replace(config.run, log_every_steps=100, checkpoint_every_steps=150),
    )


CASES = {
    # θ is pushed now and then, and several updates fall due at once: the actor must see the one that was pushed.
    "minatar": often(tiny_config(steps=400, push_every_updates=3)),
    "minatar-h3-lstm": often(with_lstm(tiny_config(preset="gdi-h3", steps=400, burn_in_steps=3))),
    "atari": atari_config(),
    "ppo": often(replace(small("ppo"), steps=400)),
    "impala-lstm-with-e": often(with_lstm(with_e(replace(small("impala"), steps=400)))),
}


@pytest.mark.usefixtures("shared_ray")
@pytest.mark.parametrize("case", CASES)
def test_lockstep_is_the_local_run_bit_by_bit(case: str, tmp_path: Path) -> None:
    config = CASES[case]
    local = gdi.train(config, tmp_path / "local")
    remote = gdi.train(config, tmp_path / "ray", runtime="ray", placement=LOCKSTEP)
    assert local.updates >= 20
    assert (remote.steps, remote.updates, remote.evaluation) == (local.steps, local.updates, local.evaluation)
    states = [newest(run.run_dir)["system"] for run in (local, remote)]
    for part in ("learner", "controllers", "parameters"):
        assert_equal(states[0][part], states[1][part])
    assert without_ray(read_metric_lines(remote.run_dir)) == read_metric_lines(local.run_dir)
    assert (remote.run_dir / "episodes.csv").read_text() == (local.run_dir / "episodes.csv").read_text()


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("shared_ray")
def test_two_learners_are_one_learner_with_the_whole_batch(tmp_path: Path) -> None:
    """Gradients summed over both; the last batch of the run is smaller and uneven.

    The one learner is the local run's, which is that of a run in lockstep: see above.
    """
    config = tiny_config(steps=400, batch_size_sequences=7)
    alone = gdi.train(config, tmp_path / "alone")
    both = gdi.train(config, tmp_path / "both", runtime="ray", placement=replace(LOCKSTEP, learners=2))
    assert both.updates == alone.updates
    one, two = saved_network(alone.run_dir), saved_network(both.run_dir)
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-3, atol=2e-5, err_msg=name)
    first, second = (read_metric_lines(run.run_dir)[0] for run in (alone, both))
    for name in ("loss/v", "loss/q", "loss/policy", "optimizer/gradient_norm", "actor/parameter_lag_updates"):
        assert second[name] == pytest.approx(first[name], rel=1e-3, abs=1e-6), name
