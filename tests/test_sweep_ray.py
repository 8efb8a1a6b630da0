"""Jobs of a sweep on Ray: the same results, and attempts that stop, crash and are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdi.cli.main import main
from gdi.errors import UserError
from gdi.sweep.claim import Claim
from gdi.sweep.jobs import Job
from gdi.sweep.plan import read_plan
from gdi.sweep.record import store_plan
from gdi.sweep.results import SweepFolder
from helpers import read_metric_lines
from sweep_runs import TINY, begin_sweep, kill, rows, wait_until, workers, write_plan

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("shared_ray")]

ONE = TINY.replace('"gdi-i3", "fixed"', '"gdi-i3"')


def test_a_sweep_on_ray_is_that_of_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path, 1000, ONE)
    for name, words in (("here", []), ("ray", ["--backend", "ray"])):
        begin_sweep(plan, tmp_path / name)
        assert main(["sweep", str(plan), "--out", str(tmp_path / name), "-j", "2", *words]) == 0
    out = capsys.readouterr().out
    assert out.count("2 of 2") == 2
    assert (tmp_path / "ray" / "results.csv").read_bytes() == (tmp_path / "here" / "results.csv").read_bytes()
    for job in SweepFolder(tmp_path / "here").jobs():
        assert read_metric_lines(job.folder(tmp_path / "ray")) == read_metric_lines(job.folder(tmp_path / "here"))
    assert rows(tmp_path / "ray" / "failures.csv") == []


def begin(tmp_path: Path) -> tuple[SweepFolder, Job, Claim]:
    folder = SweepFolder(tmp_path / "sweep")
    store_plan(folder.path, read_plan(write_plan(tmp_path, 100_000, ONE)))
    job = folder.jobs()[0]
    claim = folder.claims.acquire(job.name)
    assert claim is not None
    return folder, job, claim


def test_an_attempt_on_ray_stops_in_order_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gdi.sweep import on_ray

    monkeypatch.setattr(on_ray, "READ_STEPS_SECONDS", 0.0)
    folder, job, claim = begin(tmp_path)
    reached = 0
    for _ in range(2):
        attempt = on_ray.RayAttempt(folder.path, job, claim)
        assert attempt.exit_code() is None
        wait_until(lambda attempt=attempt, reached=reached: attempt.steps > reached + 500, "steps")  # type: ignore[misc]
        attempt.stop()
        wait_until(lambda attempt=attempt: attempt.exit_code() is not None, "the end")  # type: ignore[misc]
        assert attempt.exit_code() == 0, attempt.message()
        assert folder.status(job).word == "started"
        reached = attempt.steps
        assert not list((folder.path / "stops").iterdir())
    assert (folder.path / "logs" / f"{job.name}.log").read_text().count(": stopped") == 2


def test_a_crash_on_ray_has_its_code_and_a_lost_task_ends_its_process(tmp_path: Path) -> None:
    from gdi.sweep.on_ray import RayAttempt

    folder, job, claim = begin(tmp_path)
    attempt = RayAttempt(folder.path, job, claim)
    wait_until(lambda: bool(workers(folder.path)), "the process")
    kill(workers(folder.path))
    wait_until(lambda: attempt.exit_code() is not None, "the end")
    assert (attempt.exit_code(), attempt.message()) == (-9, "ended by SIGKILL")

    lost = RayAttempt(folder.path, job, claim)
    wait_until(lambda: bool(workers(folder.path)), "the process")
    lost.kill()
    wait_until(lambda: lost.exit_code() is not None, "the end")
    assert lost.exit_code() == 255
    assert lost.message()
    wait_until(lambda: not workers(folder.path), "the end of the process")


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    import ray

    from gdi.sweep.on_ray import cluster_jobs, ray_cluster

    assert cluster_jobs() == 8
    with pytest.raises(UserError, match="already connected"), ray_cluster("127.0.0.1:1"):
        pass
    assert ray.is_initialized()
