"""Tiny sweeps: their plan, a driver in its own process, and what must be true of a sweep's folder."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gdi.sweep.claim import _read as read_claim
from gdi.sweep.claim import newest_generations
from gdi.sweep.holder import is_dead
from gdi.sweep.results import SweepFolder
from helpers import read_metric_lines

TINY = """\
envs = ["MinAtar/Breakout-v0"]
presets = ["gdi-i3", "fixed"]
seeds = "0-1"
steps = {steps}
[settings]
env.num_envs = 8
network.hidden_units = 16
data.sequence_steps = 5
data.batch_size_sequences = 8
data.replay = 2
data.replay_span_windows = 4
evaluation.episodes = 2
evaluation.every_steps = 1000
run.log_every_steps = 250
run.checkpoint_every_steps = 250
run.states_per_stage = 0
"""
PATIENCE_SECONDS = 300.0


def write_plan(folder: Path, steps: int = 2000, text: str = TINY) -> Path:
    path = folder / "tiny.toml"
    path.write_text(text.format(steps=steps))
    return path


class DriverProcess:
    """A ``gdi sweep`` in its own process."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "gdi", "sweep", *words]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err


def workers(sweep: Path) -> list[int]:
    """Return the numbers of the living workers, as the claims name them."""
    claims = sweep / "claims"
    if not claims.is_dir():
        return []
    found = []
    for name, generation in newest_generations(claims).items():
        seconds, _, holders = read_claim(claims / f"{name}.{generation}")
        found += [holder.pid for holder in holders[1:] if seconds and not is_dead(holder)]
    return found


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)


def wait_for_workers(sweep: Path, driver: DriverProcess, count: int = 1) -> None:
    wait_until(lambda: len(workers(sweep)) >= count or driver.process.poll() is not None, "workers")
    assert driver.process.poll() is None, "the driver ended before its workers were seen"


def logged_lines(sweep: Path) -> int:
    """Return the lines that all runs have logged so far."""
    return sum(path.read_bytes().count(b"\n") for path in sweep.glob("runs/*/*/*/metrics.jsonl"))


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_whole(sweep: Path, expected: Path, failures: int = 0) -> None:
    """Check that nothing is lost, doubled or trained twice, and that each run equals the undisturbed one."""
    assert (sweep / "results.csv").read_bytes() == (expected / "results.csv").read_bytes()
    assert len(rows(sweep / "failures.csv")) == failures
    for job in SweepFolder(expected).jobs():
        assert read_metric_lines(job.folder(sweep)) == read_metric_lines(job.folder(expected))
        ends = (sweep / "logs" / f"{job.name}.log").read_text().count(": finished")
        assert ends <= 1, f"{job} was trained {ends} times"
    assert not [path for path in sweep.rglob(".*.part") if "checkpoints" not in path.parts]
