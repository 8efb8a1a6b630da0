"""SIGKILL at random moments of a DQN run with a full replay: every resumed run equals the one that nobody killed.

GDI_KILLS=20 python -m pytest tests/test_kills.py
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from gdi.cli.main import main
from helpers import read_metric_lines, saved_network
from processes import CommandProcess

KILLS = int(os.environ.get("GDI_KILLS", "2"))
CAPACITY, STEPS, LOG = 300, 1800, 50
RUN = [
    *("train", "dqn", "--env=MinAtar/Breakout-v0", f"--steps={STEPS}", "--seed=5", "--network.hidden-units=16"),
    *(f"--data.capacity-transitions={CAPACITY}", "--data.learn-start-transitions=100", "--run.threads=1"),
    *("--evaluation.every-steps=600", "--evaluation.episodes=2", f"--run.log-every-steps={LOG}"),
    *("--run.checkpoint-every-steps=100", "--json"),
]

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert main([*RUN, "--run-dir", str(folder)]) == 0
    return folder


def kill_after(run_dir: Path, steps: int, seconds: float) -> None:
    """Kill the run some seconds after it has logged so many steps."""
    process = CommandProcess(*RUN, "--run-dir", str(run_dir))
    log, deadline = run_dir / "metrics.jsonl", time.monotonic() + 240
    while not log.exists() or log.read_bytes().count(b'"kind": "train"') < steps // LOG:
        assert not process.has_ended(), process.end()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(seconds)
    process.send(signal.SIGKILL)
    assert process.end()[0] == -signal.SIGKILL  # not at its end


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_run_resumes_as_if_never_killed(number: int, whole: Path, tmp_path: Path) -> None:
    rng = random.Random(number)
    run_dir = tmp_path / "run"
    kill_after(run_dir, rng.randrange(2 * CAPACITY, STEPS * 3 // 4), rng.uniform(0.0, 0.1))
    assert main([*RUN, "--run-dir", str(run_dir), "--resume"]) == 0
    assert read_metric_lines(run_dir) == read_metric_lines(whole)
    assert (run_dir / "episodes.csv").read_bytes() == (whole / "episodes.csv").read_bytes()
    resumed = saved_network(run_dir)
    for name, value in saved_network(whole).items():
        np.testing.assert_array_equal(value, resumed[name])
    assert not list((run_dir / "checkpoints").glob(".*"))
