"""Whole runs: the same seed gives the same run, and a run that was stopped continues as if it never had been."""

from __future__ import annotations

import csv
import threading
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gdi
from gdi.cli.main import main
from gdi.config import MultiplicativeWeightsConfig
from gdi.controller.per_environment import PerEnvironment
from gdi.errors import UserError
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.folder import read_config
from gdi.runtime.local import build
from gdi.runtime.lock import RunLock, lock_holder
from helpers import read_metric_lines, saved_network, stop_after, tiny_config, with_lstm


@pytest.mark.parametrize("preset", ["gdi-i3", "gdi-h3"])
def test_same_seed_same_run_and_another_seed_another(tmp_path: Path, preset: str) -> None:
    config = tiny_config(preset=preset, steps=600)
    one, two = (gdi.train(config, tmp_path / name) for name in ("one", "two"))
    other = gdi.train(replace(config, seed=8), tmp_path / "other")
    assert read_metric_lines(one.run_dir) == read_metric_lines(two.run_dir)
    assert (one.run_dir / "episodes.csv").read_bytes() == (two.run_dir / "episodes.csv").read_bytes()
    assert read_metric_lines(one.run_dir) != read_metric_lines(other.run_dir)
    for name, value in saved_network(one.run_dir).items():
        np.testing.assert_array_equal(value, saved_network(two.run_dir)[name])


def test_a_run_ends_on_exactly_the_steps_asked_and_trains_each_exactly_replay_times(tmp_path: Path) -> None:
    result = gdi.train(tiny_config(steps=1003), tmp_path / "run")
    assert result.steps == 1003
    state = CheckpointStore(result.run_dir / "checkpoints", 3, pytest.fail).newest()
    assert state is not None
    assert state["system"]["learner"]["trained_transitions"] == 2 * 1003
    assert state["system"]["collector"]["windows"] == {}
    # The last update's rate is the last of a line that ends at 0.
    rates = [line["optimizer/learning_rate"] for line in read_metric_lines(result.run_dir) if line["kind"] == "train"]
    assert rates[-1] < 0.3 * max(rates)


CASES = {
    "feed-forward": tiny_config(),
    "recurrent-h3": with_lstm(tiny_config(preset="gdi-h3", burn_in_steps=3)),
    "per-environment": (lambda c: replace(c, controller=replace(c.controller, per_environment=True)))(tiny_config()),
    "multiplicative": replace(tiny_config(), controller=MultiplicativeWeightsConfig()),
    "random": tiny_config(preset="random"),
    "seldom-pulled": tiny_config(push_every_updates=3, pull_every_steps=7),
    "overlap": (lambda c: replace(c, run=replace(c.run, overlap=True)))(tiny_config(workers=2)),
}


# Stops in the middle, and in the very iterations that log (250, 500), save (500) and evaluate (1000).
STOPS = [(name, 450) for name in CASES] + [("feed-forward", steps) for steps in (250, 500, 1000, 1190)]


@pytest.mark.parametrize(("name", "steps"), STOPS)
def test_stopped_and_resumed_equals_never_stopped(tmp_path: Path, whole_run: Path, name: str, steps: int) -> None:
    config = CASES[name]
    if config == tiny_config():
        whole = whole_run
    else:
        config = replace(config, steps=900, evaluation=replace(config.evaluation, every_steps=600))
        whole = gdi.train(config, tmp_path / "whole").run_dir
    part = gdi.train(config, tmp_path / "part", console=stop_after(steps))
    assert not part.finished
    assert steps <= part.steps
    resumed = gdi.train(config, tmp_path / "part", resume=True)
    assert resumed.finished
    assert read_metric_lines(resumed.run_dir) == read_metric_lines(whole)
    assert (resumed.run_dir / "episodes.csv").read_bytes() == (whole / "episodes.csv").read_bytes()
    for key, value in saved_network(whole).items():
        np.testing.assert_array_equal(value, saved_network(resumed.run_dir)[key])


def test_the_run_folder_has_everything(whole_run: Path) -> None:
    assert read_config(whole_run) == tiny_config()
    assert list((whole_run / "tensorboard").glob("events.*"))
    with (whole_run / "episodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    lines = [line for line in read_metric_lines(whole_run) if line["kind"] == "train"]
    assert len(rows) == lines[-1]["episodes"] > 50
    assert all(0 <= float(row["epsilon"]) <= 1 for row in rows)
    health = [
        "policy/entropy",
        "policy/ratio_mean",
        "policy/ratio_clip_fraction",
        "policy/advantage_scale",
        "value/change",
        "actor/parameter_lag_updates",
        "controller/epsilon/block_value",
        "controller/epsilon/block_count",
        "controller/epsilon/top_block_probability",
    ]
    assert set(health) <= set(lines[0])


def lags(run_dir: Path) -> list[float]:
    return [line["actor/parameter_lag_updates"] for line in read_metric_lines(run_dir) if line["kind"] == "train"]


def test_parameter_lag_counts_updates_behind(tmp_path: Path) -> None:
    """8 environments and batch 8 make one update a window: pushing each, the actor is never behind."""
    once = {"replay": 1, "replay_span_windows": 1, "batch_size_sequences": 8}
    assert max(lags(gdi.train(tiny_config(**once, steps=1000), tmp_path / "each").run_dir)) == 0.0
    # Pushing every tenth, it is 0 to 9 behind, evenly: 4.5 on average, also in the last, unfilled window.
    slow = gdi.train(tiny_config(**once, push_every_updates=10, steps=2000), tmp_path / "tenth")
    assert np.mean(lags(slow.run_dir)[2:]) == pytest.approx(4.5, abs=1.0)
    assert max(lags(slow.run_dir)) <= 9


def test_with_overlap_the_actor_is_one_window_behind(tmp_path: Path) -> None:
    """One update a window, as above: the window that is trained was acted before the update of the one before it."""
    config = tiny_config(replay=1, replay_span_windows=1, batch_size_sequences=8)
    config = replace(config, run=replace(config.run, overlap=True))
    result = gdi.train(config, tmp_path / "run")
    found = lags(result.run_dir)
    assert found[0] < 1.0  # the first window has nothing to be behind
    assert found[1:-1] == [1.0] * len(found[1:-1])
    assert len(found) > 3
    assert result.steps == config.steps
    again = gdi.train(config, tmp_path / "again")
    assert read_metric_lines(again.run_dir) == read_metric_lines(result.run_dir)


def test_a_controller_per_environment_learns_from_its_own_episodes_only() -> None:
    config = CASES["per-environment"]
    system = build(config)
    episodes = []
    for _ in range(20):
        _, sampled = system.parts.act(10**9)
        system.parts.reweight(sampled)
        episodes += sampled.episodes
    ended = Counter(episode.env for episode in episodes)
    assert isinstance(system.parts.controller, PerEnvironment)
    assert len(ended) == len(system.parts.controller.controllers) == config.env.num_envs
    for env, controller in enumerate(system.parts.controller.controllers):
        for ensemble in controller.ensembles:
            assert all(bandit.counts.sum() == ended[env] for bandit in ensemble.bandits)
    system.close()


def test_a_run_that_is_being_trained_is_not_resumed_by_another(tmp_path: Path) -> None:
    config = tiny_config(steps=400)
    gdi.train(config, tmp_path / "run")
    with closing(RunLock(tmp_path / "run")), pytest.raises(UserError, match="another process"):
        gdi.train(config, tmp_path / "run", resume=True)
    assert gdi.train(config, tmp_path / "run", resume=True).finished


def test_only_a_run_on_ray_takes_another_number_of_actors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = gdi.train(tiny_config(steps=400), tmp_path / "run").run_dir
    before = sorted(folder.iterdir())
    for holder, words in ((None, "is not being trained: start it"), ("local", "not being trained on Ray")):
        with closing(RunLock(folder, holder)) if holder else nullcontext():
            assert lock_holder(folder) == holder
            assert main(["actors", str(folder), "3"]) == 2
        assert words in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before
    with closing(RunLock(folder, "ray")):
        assert main(["actors", str(folder), "3"]) == 0
    assert (folder / "actors").read_text() == "3\n"


def test_training_in_a_thread_works(tmp_path: Path) -> None:
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(gdi.train(tiny_config(steps=400), tmp_path / "run").steps))
    thread.start()
    thread.join()
    assert done == [400]


def test_evaluating_more_often_does_not_change_training(tmp_path: Path, whole_run: Path) -> None:
    config = tiny_config()
    often = replace(config, evaluation=replace(config.evaluation, every_steps=300, episodes=2))
    two = gdi.train(often, tmp_path / "often")
    for name, value in saved_network(whole_run).items():
        np.testing.assert_array_equal(value, saved_network(two.run_dir)[name])


@pytest.mark.long
def test_learning_on_the_chain(tmp_path: Path) -> None:
    """The chain pays only at its far end: a uniform policy gets there in about one try of 256."""
    config = tiny_config("Toy/Chain-v0", steps=15_000, replay=4, learning_rate=3e-3)
    config = replace(config, evaluation=replace(config.evaluation, every_steps=15_000, episodes=16))
    result = gdi.train(config, tmp_path / "run")
    assert result.evaluation is not None
    assert result.evaluation.mean >= 0.9
