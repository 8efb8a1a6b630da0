"""Tiny sweeps: their plan, a driver in its own process, and what must be true of a sweep's folder."""

from __future__ import annotations

import csv
import io
import os
import signal
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from gdi.cli.main import main
from gdi.sweep.claim import _read as read_claim
from gdi.sweep.claim import newest_generations
from gdi.sweep.estimate import remember_trials
from gdi.sweep.holder import is_dead
from gdi.sweep.jobs import all_jobs
from gdi.sweep.plan import read_plan
from gdi.sweep.probe import Trial
from gdi.sweep.record import kind_of, store_plan
from gdi.sweep.results import SweepFolder
from helpers import read_metric_lines
from processes import CommandProcess

TINY = """\
envs = ["MinAtar/Breakout-v0"]
presets = ["gdi-i3", "fixed"]
seeds = "0-1"
steps = {steps}
[settings]
env.num_envs = 16
network.hidden_units = 16
data.sequence_steps = 5
data.batch_size_sequences = 16
data.replay = 2
data.replay_span_windows = 4
evaluation.episodes = 2
evaluation.every_steps = 1000
run.log_every_steps = 250
run.checkpoint_every_steps = 250
run.states_per_stage = 0
"""
SWEEP_STEPS = 2400  # of each run of the sweeps that are stopped or killed
PATIENCE_SECONDS = 300.0


def write_plan(folder: Path, steps: int = 2000, text: str = TINY) -> Path:
    path = folder / "tiny.toml"
    path.write_text(text.format(steps=steps))
    return path


def begin_sweep(plan: Path, sweep: Path) -> None:
    """Make a sweep folder as one that was stopped after its trials. Only few tests need these, which take seconds."""
    store_plan(sweep, read_plan(plan))
    remember_trials(sweep, {kind_of(job): Trial(1000.0, 1 << 28, 1 << 20) for job in all_jobs(read_plan(plan))})


def drive(*words: str) -> tuple[int, str, str]:
    """Run ``gdi sweep`` here, with its jobs in processes. Return its exit code, and what it printed.

    It draws no figures at its end, which would take as long as the jobs. A ``DriverProcess`` draws them.
    """
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("gdi.sweep.summary.draw_figures", lambda folder: None)
        code = main(["sweep", *words])
    return code, out.getvalue(), err.getvalue()


class DriverProcess(CommandProcess):
    """A ``gdi sweep`` in its own process."""

    def __init__(self, *words: str) -> None:
        super().__init__("sweep", *words)


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
    wait_until(lambda: len(workers(sweep)) >= count or driver.has_ended(), "workers")
    assert not driver.has_ended(), "the driver ended before its workers were seen"


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
