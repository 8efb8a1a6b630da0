"""Runs through the workers of Ray without its processes, which take seconds to start: see ``ray_in_process.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gdi
import ray_envs
from gdi.cli.main import main
from gdi.config import SampledReplayConfig
from gdi.errors import DivergenceError
from gdi.runtime.exceptions import StallError
from helpers import RecordingConsole, error_line, read_metric_lines, saved_network, stop_after, tiny_config, with_lstm
from ray_runs import (
    LOCKSTEP,
    QUICK,
    At,
    Both,
    When,
    assert_goes_back_once,
    assert_same_runs,
    atari_config,
    newest,
    often,
    seldom,
    without_ray,
)
from systems import small, with_e
from test_env_faults import faulty
from test_faults import poison

pytest.importorskip("ray")
from gdi.runtime.ray.pool import FAILURES_PER_ACTOR
from ray_in_process import ProcessEndsError, RayInProcess

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


def test_two_actors_fill_slots_of_their_own_and_another_layout_fills_the_memory_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of an actor has 4 columns, and one of the local runtime has 8: their slots differ."""
    config = replace(small("dqn"), steps=1000)
    placement = replace(QUICK, actors=2)
    with monkeypatch.context() as patch:
        RayInProcess().install(patch)
        part = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=stop_after(500))
    assert part.updates == (part.steps - 200) // 4
    assert newest(part.run_dir)["system"]["collector"]["valid"].shape[2] == 4
    assert set(newest(part.run_dir)["system"]["collector"]["open"]) == {"0", "1"}
    console = RecordingConsole()
    resumed = gdi.train(config, part.run_dir, resume=True, console=console)
    assert "200 steps fill it again" in console.notices[0]
    assert resumed.updates == (config.steps - 200 - 200) // 4


def test_a_run_saved_with_overlap_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config(steps=800)
    config = replace(config, run=replace(config.run, overlap=True))
    gdi.train(config, tmp_path / "run", console=stop_after(300))
    RayInProcess().install(monkeypatch)
    result = gdi.train(config, tmp_path / "run", resume=True, runtime="ray", placement=QUICK)
    assert result.finished
    assert result.steps == 800
    assert newest(result.run_dir)["system"]["learner"]["trained_transitions"] == config.data.replay * 800


def test_a_divergence_of_the_learner_is_told_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches are bad, and θ is not: no actor meets anything that is not finite."""
    poison(monkeypatch, lambda call: call > 20)
    RayInProcess().install(monkeypatch)
    with pytest.raises(DivergenceError, match="good ones: lower"):
        gdi.train(tiny_config(), tmp_path / "run", runtime="ray", placement=QUICK)
    assert all(np.isfinite(value).all() for value in saved_network(tmp_path / "run").values())


def test_a_fresh_copy_is_counted_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ENVS_FLAG", str(tmp_path / "flag"))
    RayInProcess().install(monkeypatch)
    console = RecordingConsole()
    placement = replace(QUICK, actors=2)
    config = faulty("Raises", restarts=1)
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=console)
    assert (result.steps, result.finished) == (400, True)
    (told,) = [text for text in console.notices if "fresh copy" in text]
    assert "ValueError: the lever broke" in told
    lines = [line for line in read_metric_lines(result.run_dir) if line["kind"] == "train"]
    assert lines[-1]["env/restarts_total"] == 1
    assert lines[-1]["ray/replaced_total"] == 0


@pytest.mark.parametrize("worker", ["LearnerWorker", "ControllerWorker", "ParameterWorker", "CollectorWorker"])
def test_a_lost_central_part_goes_back_to_the_newest_checkpoint(
    worker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = RayInProcess()
    here.install(monkeypatch)
    assert_goes_back_once(At(250, lambda: here.lose(worker)), tmp_path / "run", QUICK)


def test_a_divergence_of_an_actor_is_told_and_saved_as_it_is_locally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RayInProcess().install(monkeypatch)
    config = tiny_config(warmup_updates=0, learning_rate=1e20, batch_size_sequences=16, replay=1, replay_span_windows=1)
    with pytest.raises(DivergenceError, match="policy became"):
        gdi.train(config, tmp_path / "run", runtime="ray", placement=QUICK)
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


def test_an_environment_that_always_ends_its_process_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(self: ray_envs.MisbehavingEnv) -> None:
        if self._steps == 5:
            raise ProcessEndsError

    monkeypatch.setattr(ray_envs.MisbehavingEnv, "misbehave", end)
    RayInProcess().install(monkeypatch)
    told = f"{FAILURES_PER_ACTOR + 1} actors in a row failed before any window"
    with pytest.raises(StallError, match=told):
        gdi.train(tiny_config("ray_envs:Plain-v0", steps=1200), tmp_path / "run", runtime="ray", placement=QUICK)


def test_actors_join_and_leave_while_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    RayInProcess().install(monkeypatch)
    monkeypatch.setattr("gdi.runtime.ray.actor_count.LOOK_EVERY_SECONDS", 0.0)
    folder = tmp_path / "run"

    def want(actors: int) -> Callable[[], None]:
        return lambda: main(["actors", str(folder), str(actors)])

    placement = replace(QUICK, envs_per_actor=4)
    console, all_play = At(300, want(3)), When(lambda event: event.get("ray/actors") == 3, want(1))
    config = seldom(tiny_config(steps=1500))
    result = gdi.train(config, folder, runtime="ray", placement=placement, console=Both(console, all_play))
    assert result.steps == 1500
    counts = [line["ray/actors"] for line in console.seen]
    assert counts[0] == 1
    assert max(counts) == 3
    assert counts[-1] == 1
    assert console.seen[-1]["ray/dropped_windows_total"] == 0  # who leaves delivers first
    capsys.readouterr()
    assert "is not being trained: start it" in error_line(["actors", str(folder), "2"], capsys)
