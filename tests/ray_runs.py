"""What the tests of the Ray runtime share: consoles that act while a run goes on, and a look at its processes.

Every run on Ray starts six processes, of which three import torch: seconds, whatever it does then. So these tests have
few runs, each of few steps; and a console that waits for a process costs no steps, for the learner waits with it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gdi.config import Config
from gdi.placement import PlacementConfig
from gdi.runtime.checkpoint import CheckpointStore
from helpers import Listener

QUICK = PlacementConfig(stall_seconds=120.0, hang_seconds=60.0)
LOCKSTEP = replace(QUICK, lockstep=True)
TRAIN = [
    *("--env=MinAtar/Breakout-v0", "--steps=200000", "--env.num-envs=8", "--data.sequence-steps=5"),
    *("--data.batch-size-sequences=8", "--network.hidden-units=16", "--evaluation.episodes=2", "--run.threads=1"),
    *("--run.checkpoint-every-steps=500", "--evaluation.every-steps=1000000"),
]


class At(Listener):
    """Does something once, when the run has come that far."""

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


class When(Listener):
    """Does something once, at the first event of which ``is_it`` holds."""

    def __init__(self, is_it: Callable[[dict[str, Any]], bool], act: Callable[[], object]) -> None:
        super().__init__()
        self._is_it, self._act = is_it, act

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        if self._is_it(event):
            act, self._act = self._act, lambda: None
            act()


class Both:
    """Two consoles at once."""

    def __init__(self, *consoles: Listener) -> None:
        self._consoles = consoles

    def event(self, event: dict[str, Any]) -> None:
        for console in self._consoles:
            console.event(event)

    def episode(self, steps: int, episode: Any) -> None: ...

    def close(self) -> None: ...


def processes(worker: str) -> list[int]:
    """Those of this kind that live, in the Ray that this process is connected to."""
    from ray._private.state import actors

    found = [actor for actor in actors().values() if actor["State"] == "ALIVE"]
    return [actor["Pid"] for actor in found if actor["ActorClassName"] == worker]


def niceness_of(worker: str) -> set[int]:
    """The niceness of all its threads."""
    threads = [int(thread) for pid in processes(worker) for thread in os.listdir(f"/proc/{pid}/task")]
    return {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}


def kill_one(worker: str) -> Callable[[], None]:
    return lambda: os.kill(processes(worker)[-1], signal.SIGKILL)


def newest(run_dir: Path) -> dict[str, Any]:
    state = CheckpointStore(run_dir / "checkpoints", 3, pytest.fail).newest()
    assert state is not None
    return state


def seldom(config: Config) -> Config:
    """Checkpoints and evaluations at the end only."""
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
    """Waits for the processes, and the run with it: it cannot end before they are there."""
    return lambda: wait_until(lambda: len(processes(worker)) >= count)
