"""A sweep as its own process: Ctrl-C, two drivers, a full disk, crashes, orphans and time limits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gdi.sweep.results import SweepFolder
from sweep_runs import (
    SWEEP_STEPS,
    TINY,
    DriverProcess,
    begin_sweep,
    check_whole,
    drive,
    kill,
    logged_lines,
    rows,
    wait_for_workers,
    wait_until,
    workers,
    write_plan,
)
from test_run_folder import may_mount

pytestmark = pytest.mark.kill


def words(tmp_path: Path, *more: str) -> list[str]:
    plan = write_plan(tmp_path, SWEEP_STEPS)
    begin_sweep(plan, tmp_path / "sweep")
    return [str(plan), "--out", str(tmp_path / "sweep"), *(more or ("-j", "2"))]


def test_ctrl_c_once_saves_and_twice_ends_at_once(tmp_path: Path, whole_sweep: Path) -> None:
    sweep = tmp_path / "sweep"
    driver = DriverProcess(*words(tmp_path))
    wait_for_workers(sweep, driver, 2)
    wait_until(lambda: logged_lines(sweep) > 2, "lines")
    running = workers(sweep)
    driver.send(signal.SIGINT)
    code, out, err = driver.end()
    assert code == -signal.SIGINT
    assert "are left: gdi sweep" in out
    assert "Traceback" not in err
    assert not workers(sweep)
    folder = SweepFolder(sweep)
    started = [job for job in folder.jobs() if folder.status(job).word == "started"]
    assert started, f"{running} were running"
    assert all(any((job.folder(sweep) / "checkpoints").glob("step-*")) for job in started)
    assert all(folder.claims.state(job.name).is_free for job in folder.jobs())
    assert rows(sweep / "failures.csv") == []

    driver = DriverProcess(*words(tmp_path))
    wait_for_workers(sweep, driver, 1)
    driver.send(signal.SIGINT)
    wait_until(lambda: driver.has_ended() or bool(driver.send(signal.SIGINT)), "the end")
    driver.end()
    wait_until(lambda: not workers(sweep), "the end of the workers")
    code, out, err = drive(str(sweep))
    assert code == 0, out + err
    check_whole(sweep, whole_sweep)


def test_two_drivers_share_a_folder(tmp_path: Path, whole_sweep: Path) -> None:
    command = words(tmp_path, "-j", "1")
    drivers = [DriverProcess(*command) for _ in range(2)]
    ends = [driver.end() for driver in drivers]
    assert [code for code, _, _ in ends] == [0, 0], ends
    check_whole(tmp_path / "sweep", whole_sweep)
    assert list((tmp_path / "sweep" / "figures").glob("*.png"))  # though both may have drawn them
    worked = [err.count(": finished") for _, _, err in ends]
    assert sum(worked) == 4
    assert min(worked) >= 1


def test_workers_of_a_dead_driver_save_and_end(tmp_path: Path, whole_sweep: Path) -> None:
    sweep = tmp_path / "sweep"
    driver = DriverProcess(*words(tmp_path))
    wait_for_workers(sweep, driver, 2)
    wait_until(lambda: len([log for log in sweep.glob("runs/*/*/*/metrics.jsonl") if log.stat().st_size]) == 2, "lines")
    kill([driver.pid])
    driver.end()
    wait_until(lambda: not workers(sweep), "the end of the workers")
    folder = SweepFolder(sweep)
    assert not any(folder.status(job).is_result for job in folder.jobs()), "they went on without a driver"
    ends = [path.read_text() for path in (sweep / "logs").glob("*.log")]
    assert all(text.endswith(": stopped\n") for text in ends), ends
    code, out, err = drive(str(sweep))
    assert code == 0, out + err
    check_whole(sweep, whole_sweep)


def test_a_killed_worker_is_tried_again_and_then_is_a_failure(tmp_path: Path, whole_sweep: Path) -> None:
    sweep = tmp_path / "sweep"
    driver = DriverProcess(*words(tmp_path, "-j", "1", "--retry", "1"))
    killed: list[int] = []
    while len(killed) < 2:
        wait_until(lambda before=tuple(killed): bool(set(workers(sweep)) - set(before)), "a worker")
        killed += sorted(set(workers(sweep)) - set(killed))[:1]
        kill(killed[-1:])
    code, out, err = driver.end()
    assert code == 1, out + err
    (failure,) = rows(sweep / "failures.csv")
    assert failure == {
        **{"env": "MinAtar/Breakout-v0", "preset": "gdi-i3", "variant": "", "seed": "0"},
        **{"attempt": "2", "exit_code": "-9", "message": "ended by SIGKILL"},
    }
    assert "It is tried again" in err
    assert "1 jobs failed" in out
    assert len(rows(sweep / "results.csv")) == 3
    code, out, err = drive(str(sweep))  # a new session tries it again
    assert code == 0, out + err
    check_whole(sweep, whole_sweep)


def test_minutes_stop_a_sweep_in_order(tmp_path: Path, whole_sweep: Path) -> None:
    sweep = tmp_path / "sweep"
    code, out, _ = drive(*words(tmp_path, "-j", "1", "--minutes", "0.01"))
    assert code == 0
    assert "of 4 jobs are left" in out
    assert not workers(sweep)
    code, out, err = drive(str(sweep))
    assert code == 0, out + err
    check_whole(sweep, whole_sweep)


OWN_ENV = """\
import gymnasium, numpy as np
from pathlib import Path

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        Env.steps += 1
        if Env.steps > 300 and Path(__file__).with_name("broken").exists():
            raise RuntimeError("the env is out of luck")
        return np.zeros(2, np.float32), 1.0, bool(Env.steps % 10 == 0), False, {}
"""


def test_an_environment_that_raises_is_a_failure_with_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "own_env.py").write_text(OWN_ENV)
    (tmp_path / "broken").touch()
    text = TINY.replace("MinAtar/Breakout-v0", f"{tmp_path}/own_env.py:Env").replace('"0-1"', "3")
    plan = write_plan(tmp_path, 2000, text.replace('"gdi-i3", "fixed"', '"gdi-i3"'))
    sweep = tmp_path / "sweep"
    code, out, err = drive(str(plan), "--out", str(sweep))
    assert code == 1, out + err
    (failure,) = rows(sweep / "failures.csv")
    assert (failure["attempt"], failure["exit_code"], failure["seed"]) == ("2", "1", "3")
    assert "RuntimeError: the env is out of luck" in failure["message"]
    assert rows(sweep / "results.csv") == []
    (tmp_path / "broken").unlink()
    code, out, err = drive(str(sweep))
    assert code == 0, out + err
    assert rows(sweep / "failures.csv") == []
    assert [row["status"] for row in rows(sweep / "results.csv")] == ["finished"]


def test_a_diverged_run_is_a_result(tmp_path: Path) -> None:
    text = TINY.replace('"0-1"', "3").replace('"gdi-i3", "fixed"', '"gdi-i3"') + "lr = 1e25\n"
    sweep = tmp_path / "sweep"
    code, out, err = drive(str(write_plan(tmp_path, 4000, text)), "--out", str(sweep))
    assert code == 0, out + err
    (row,) = rows(sweep / "results.csv")
    assert row["status"] == "diverged"
    assert 0 < int(row["steps"]) < 4000
    assert rows(sweep / "failures.csv") == []
    assert "Diverged runs are not in the means." in out
    code, out, _ = drive(str(sweep))
    assert (code, rows(sweep / "results.csv")) == (0, [row])
    assert "All 1 jobs are done." in out


@pytest.mark.parametrize("size", ["60k", "1500k"])
def test_a_full_disk_is_one_line_and_loses_nothing(size: str, tmp_path: Path, whole_sweep: Path) -> None:
    (tmp_path / "probe").mkdir()
    if not may_mount(tmp_path / "probe"):
        pytest.skip("this system does not let a user mount a small disk")
    disk, sweep = tmp_path / "disk", tmp_path / "disk" / "sweep"
    disk.mkdir()
    plan = write_plan(tmp_path, SWEEP_STEPS)
    script = (
        f'mount -t tmpfs -o size={size} none "{disk}" && "$@"; code=$?; cp -a "{disk}" "{tmp_path}/kept"; exit $code'
    )
    command = [sys.executable, "-m", "gdi", "sweep", str(plan), "--out", str(sweep), "-j", "2"]
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *command], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    errors = [line for line in ended.stderr.splitlines() if not line.startswith(("gdi-i3 ", "fixed "))]
    assert len(errors) == 1, ended.stderr
    assert "No space left on device" in errors[0]
    kept = tmp_path / "kept" / "sweep"
    if (kept / "failures.csv").exists():
        assert rows(kept / "failures.csv") == []
    again = [str(kept)] if (kept / "plan.toml").exists() else [str(plan), "--out", str(kept)]
    code, out, err = drive(*again)
    assert code == 0, out + err
    check_whole(kept, whole_sweep)


def test_a_worker_whose_job_was_taken_ends(tmp_path: Path) -> None:
    """As after a minute of sleep on another machine: the newer claim counts, and nobody else writes to the run."""
    sweep = tmp_path / "sweep"
    driver = DriverProcess(*words(tmp_path, "-j", "1"))
    wait_for_workers(sweep, driver)
    (worker,) = workers(sweep)
    name = "MinAtar-Breakout-v0~gdi-i3~seed-0"
    theirs = {"token": "theirs", "holders": [{"host": "elsewhere", "pid": 1, "began": "1"}]}
    (sweep / "claims" / f"{name}.2").write_text(json.dumps(theirs))
    wait_until(lambda: worker not in workers(sweep), "the end of the worker")
    driver.send(signal.SIGINT)
    _, _, err = driver.end()
    assert "gdi-i3 MinAtar/Breakout-v0 seed 0: taken over by another process" in err
