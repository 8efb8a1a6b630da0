"""The Ray runtime in lockstep is the local run, bit by bit; and two learners are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdi
from gdi.config import Config, SampledReplayConfig
from helpers import RecordingConsole, read_metric_lines, saved_network, stop_after, tiny_config, with_lstm
from ray_runs import LOCKSTEP, QUICK, newest
from systems import small, with_e

pytest.importorskip("ray")
from ray_in_process import RayInProcess


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


SLICES = SampledReplayConfig(
    capacity_transitions=200,
    learn_start_transitions=100,
    batch_size_sequences=8,
    slice_steps=5,
    sequence_steps=5,
    period_transitions=10,
)
CASES = {
    # θ is pushed now and then, and several updates fall due at once: the actor must see the one that was pushed.
    "minatar": often(tiny_config(steps=400, push_every_updates=3)),
    "minatar-h3-lstm": often(with_lstm(tiny_config(preset="gdi-h3", steps=400, burn_in_steps=3))),
    "atari": atari_config(),
    "ppo": often(replace(small("ppo"), steps=400)),
    "impala-lstm-with-e": often(with_lstm(with_e(replace(small("impala"), steps=400)))),
    "dqn": often(replace(small("dqn"), steps=500)),
    "dqn-with-e": often(with_e(replace(small("dqn"), steps=500))),
    "gdi-sampled": often(replace(tiny_config(steps=400), data=SLICES)),
}


@pytest.mark.parametrize("case", CASES)
def test_lockstep_is_the_local_run_bit_by_bit(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step goes to its worker and every answer comes back, but no process starts, which takes seconds."""
    local = gdi.train(CASES[case], tmp_path / "local")
    RayInProcess().install(monkeypatch)
    remote = gdi.train(CASES[case], tmp_path / "ray", runtime="ray", placement=LOCKSTEP)
    assert_same_runs(local, remote)


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_lockstep_in_processes_is_the_local_run_bit_by_bit(tmp_path: Path) -> None:
    local = gdi.train(CASES["atari"], tmp_path / "local")
    assert_same_runs(local, gdi.train(CASES["atari"], tmp_path / "ray", runtime="ray", placement=LOCKSTEP))


def assert_same_runs(local: gdi.TrainResult, remote: gdi.TrainResult) -> None:
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


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_two_learners_are_one_learner_with_the_whole_batch(tmp_path: Path) -> None:
    """Gradients summed over both; the last batch of the run is smaller and uneven.

    The one learner is the local run's, which is that of a run in lockstep: see above.
    """
    assert_two_are_one(tiny_config(steps=400, batch_size_sequences=7), tmp_path, ("loss/v", "loss/q", "loss/policy"))


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_two_learners_with_a_copy_of_the_memory_each_are_one(tmp_path: Path) -> None:
    config = replace(small("dqn", batch_size_sequences=7), steps=500)
    assert_two_are_one(config, tmp_path, ("loss/td",))


def assert_two_are_one(config: Config, tmp_path: Path, losses: tuple[str, ...]) -> None:
    alone = gdi.train(config, tmp_path / "alone")
    both = gdi.train(config, tmp_path / "both", runtime="ray", placement=replace(LOCKSTEP, learners=2))
    assert both.updates == alone.updates
    one, two = saved_network(alone.run_dir), saved_network(both.run_dir)
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-3, atol=2e-5, err_msg=name)
    first, second = (read_metric_lines(run.run_dir)[0] for run in (alone, both))
    for name in (*losses, "optimizer/gradient_norm", "actor/parameter_lag_updates"):
        assert second[name] == pytest.approx(first[name], rel=1e-3, abs=1e-6), name


def test_a_run_with_a_long_memory_moves_to_ray_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each runtime continues from the slots that the other one wrote, and links those that did not change."""
    config = replace(small("dqn", capacity_transitions=2400), steps=1200)
    whole = gdi.train(config, tmp_path / "whole").run_dir
    run_dir = gdi.train(config, tmp_path / "run", console=stop_after(500)).run_dir
    with monkeypatch.context() as patch:
        RayInProcess().install(patch)
        on_ray = gdi.train(config, run_dir, resume=True, runtime="ray", placement=LOCKSTEP, console=stop_after(800))
    assert 500 < on_ray.steps < 1200
    shared = [path for path in (run_dir / "checkpoints").glob("step-*/slot-*") if path.stat().st_nlink > 1]
    assert shared
    assert gdi.train(config, run_dir, resume=True).finished
    assert [without_ray([line])[0] for line in read_metric_lines(run_dir)] == read_metric_lines(whole)
    for name, value in saved_network(whole).items():
        np.testing.assert_array_equal(value, saved_network(run_dir)[name])


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_two_actors_fill_slots_of_their_own_and_another_layout_fills_the_memory_again(tmp_path: Path) -> None:
    """A window of an actor has 4 columns, and one of the local runtime has 8: their slots differ."""
    config = replace(small("dqn"), steps=1000)
    part = gdi.train(
        config, tmp_path / "run", runtime="ray", placement=replace(QUICK, actors=2), console=stop_after(500)
    )
    assert part.updates == (part.steps - 200) // 4
    assert newest(part.run_dir)["system"]["collector"]["valid"].shape[2] == 4
    assert set(newest(part.run_dir)["system"]["collector"]["open"]) == {"0", "1"}
    console = RecordingConsole()
    resumed = gdi.train(config, part.run_dir, resume=True, console=console)
    assert "200 steps fill it again" in console.notices[0]
    assert resumed.updates == (config.steps - 200 - 200) // 4
