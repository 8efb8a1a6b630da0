"""The Ray runtime's command line: bad input is one line, before any Ray is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers import error_line
from ray_runs import TRAIN

ray = pytest.importorskip("ray")


def test_without_ray_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    argv = ["train", *TRAIN, "--runtime", "ray", "--run-dir", str(tmp_path / "run")]
    assert "'.[ray]'" in error_line(argv, capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--ray-address", "auto"], "--ray-address needs --runtime ray"),
        (["--placement.actors", "2"], "--placement.… needs --runtime ray"),
        (["--runtime", "ray", "--placement.actors", "3"], "cannot divide --env.num-envs 8 evenly"),
        (["--runtime", "ray", "--placement.actors", "0"], "--placement.actors must be greater than 0"),
        (["--runtime", "ray", "--placement.lockstep", "--placement.actors", "2"], "lockstep needs exactly one actor"),
        (["--runtime", "ray", "--placement.lockstep", "--run.overlap"], "--run.no-overlap"),
        (
            ["ppo", "--runtime", "ray", "--placement.actors", "2"],
            "--data.batch-size-sequences 8 does not divide the 20 slices of an actor's window (4 environments x "
            "5 steps): set --placement.envs-per-actor 8, or --data.batch-size-sequences 5.",
        ),
        (["--runtime", "slurm"], "invalid choice: 'slurm'"),
    ],
)
def test_bad_input(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in error_line(["train", *TRAIN, *argv], capsys)


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "cannot reach the Ray cluster at '127.0.0.1:1'"), ("head", "neither auto nor host:port")],
)
def test_an_address_nobody_answers_is_one_line(
    address: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # tests before this one may have left theirs
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("asked Ray, which tries for minutes"))
    argv = ["train", *TRAIN, "--runtime", "ray", "--run-dir", str(tmp_path / "run"), "--ray-address", address]
    assert message in error_line(argv, capsys)
    assert not (tmp_path / "run").exists()
