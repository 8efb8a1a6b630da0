"""Common code for the tests of the Ray runtime: consoles that act during a run, and process queries.

Every run on Ray starts six processes, of which three import torch. That takes seconds, even for a short run, so these
tests have few runs of few steps. A console that waits for a process costs no steps, because the learner waits as well.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdi
from gdi.config import Config
from gdi.placement import PlacementConfig
from gdi.runtime.checkpoint import CheckpointStore
from helpers import RecordingConsole, read_metric_lines, tiny_config

QUICK = PlacementConfig(stall_seconds=120.0, hang_seconds=60.0)
LOCKSTEP = replace(QUICK, lockstep=True)
TRAIN = [
    *("--env=MinAtar/Breakout-v0", "--steps=200000", "--env.num-envs=8", "--data.sequence-steps=5"),
    *("--data.batch-size-sequences=8", "--network.hidden-units=16", "--evaluation.episodes=2", "--run.threads=1"),
    *("--run.checkpoint-every-steps=500", "--evaluation.every-steps=1000000"),
]


class At(RecordingConsole):
    """A console that acts once, when the run has reached a number of steps."""

    def __init__(self, steps: int, act: Callable[[], object], stop_at_notice: str = "") -> None:
        super().__init__()
        self._steps, self._act, self._stop_at_notice = steps, act, stop_at_notice
        self.seen: list[dict[str, Any]] = []

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        if event["kind"] == "notice" and self._stop_at_notice and self._stop_at_notice in event["text"]:
            os.kill(os.getpid(), signal.SIGTERM)
        if event["kind"] == "train":
            self.seen.append(event)
        if event["kind"] == "progress" and event["steps"] >= self._steps:
            act, self._act = self._act, lambda: None
            act()


class When(RecordingConsole):
    """A console that acts once, at the first event for which ``is_it`` holds."""

    def __init__(self, is_it: Callable[[dict[str, Any]], bool], act: Callable[[], object]) -> None:
        super().__init__()
        self._is_it, self._act = is_it, act

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        if self._is_it(event):
            act, self._act = self._act, lambda: None
            act()


class Both:
    """Several consoles as one."""

    def __init__(self, *consoles: RecordingConsole) -> None:
        self._consoles = consoles

    def event(self, event: dict[str, Any]) -> None:
        for console in self._consoles:
            console.event(event)

    def episode(self, steps: int, episode: Any) -> None: ...

    def close(self) -> None: ...


def processes(worker: str) -> list[int]:
    """Return the ids of live processes of this kind in the connected Ray cluster."""
    from ray._private.state import actors

    found = [actor for actor in actors().values() if actor["State"] == "ALIVE"]
    return [actor["Pid"] for actor in found if actor["ActorClassName"] == worker]


def below(pid: int) -> set[int]:
    """Return a process and all its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def niceness_of(worker: str) -> set[int]:
    """Return the niceness values of all threads of these processes."""
    threads = [int(thread) for pid in processes(worker) for thread in os.listdir(f"/proc/{pid}/task")]
    return {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}


def kill_one(worker: str) -> Callable[[], None]:
    return lambda: os.kill(processes(worker)[-1], signal.SIGKILL)


def newest(run_dir: Path) -> dict[str, Any]:
    state = CheckpointStore(run_dir / "checkpoints", 3, pytest.fail).newest()
    assert state is not None
    return state


def seldom(config: Config) -> Config:
    """Return the config with checkpoints and evaluations only at the end."""
    return replace(
        config,
        evaluation=replace(config.evaluation, every_steps=10**6),
        run=replace(config.run, checkpoint_every_steps=10**6),
    )


def wait_until(is_so: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_there_are(count: int, worker: str) -> Callable[[], None]:
    """Return a function that waits for the processes.

    The run waits as well, so it cannot end before they exist.
    """
    return lambda: wait_until(lambda: len(processes(worker)) >= count)


def assert_goes_back_once(console: At, run_dir: Path, placement: PlacementConfig) -> None:
    """Train while the console loses a part after 250 steps: the run repeats what is newer than step 200, and ends."""
    config = tiny_config(steps=400)
    # Lines newer than the newest checkpoint.
    config = replace(config, run=replace(config.run, log_every_steps=50, checkpoint_every_steps=200))
    result = gdi.train(config, run_dir, runtime="ray", placement=placement, console=console)
    assert result.finished
    assert result.steps == 400
    back = sum("Restarting from the newest checkpoint" in text for text in console.notices)
    assert back == 1, console.notices
    assert int(newest(run_dir)["system"]["learner"]["trained_transitions"]) == config.data.replay * 400
    steps = [line["steps"] for line in read_metric_lines(run_dir) if line["kind"] == "train"]
    assert steps == sorted(set(steps))  # what was logged after the checkpoint was taken back


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


def without_ray(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if not name.startswith("ray/")} for line in lines]


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
