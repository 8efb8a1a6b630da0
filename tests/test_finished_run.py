"""A finished run that is resumed gives the result that it gave at first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gdi
from gdi.cli.main import main
from gdi.evaluation import Evaluation
from helpers import tiny_config

WORDS = [
    *("train", "--env=Toy/Chain-v0", "--steps=400", "--env.num-envs=4", "--network.hidden-units=16", "--run.threads=1"),
    *("--evaluation.episodes=3", "--json"),
]


def test_resuming_a_finished_run_prints_the_first_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--run-dir", str(tmp_path / "run")]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert len(json.loads(first)["evaluation"]["returns"]) == 3
    assert main([*words, "--resume"]) == 0
    assert capsys.readouterr().out == first


def test_a_finished_run_gives_its_result_again(tmp_path: Path) -> None:
    config = tiny_config("Toy/Chain-v0", steps=400)
    first = gdi.train(config, tmp_path / "run")
    assert gdi.train(config, tmp_path / "run", resume=True) == first


def test_a_checkpoint_without_single_returns_still_loads() -> None:
    new = Evaluation("Toy/Chain-v0", 2, 1.0, 1.0, 0.0, 2.0, 1.0, 9.0, 0, returns=(0.0, 2.0))
    assert Evaluation.from_state(new.state_dict()) == new
    old = {name: value for name, value in new.state_dict().items() if name not in ("returns", "restarts")}
    assert Evaluation.from_state(old).returns == ()
