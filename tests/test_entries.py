"""What a caller of the Python API passes is checked at once, and the message names the cause."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gdi
from gdi.errors import UserError
from gdi.runtime.memory_plan import GIB, MemoryPlan
from helpers import error_line, tiny_config


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> gdi.Agent:
    run = gdi.train(tiny_config("CartPole-v1", steps=40), tmp_path_factory.mktemp("entries") / "run")
    return gdi.load(run.run_dir)


@pytest.mark.parametrize("episodes", [0, -2])
def test_an_agent_plays_at_least_one_episode(agent: gdi.Agent, tmp_path: Path, episodes: int) -> None:
    message = f"episodes must be 1 or more, not {episodes}"
    with pytest.raises(UserError, match=message):
        agent.evaluate(episodes=episodes)
    with pytest.raises(UserError, match=message):
        agent.record(tmp_path / "z.mp4", episodes=episodes)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_agent_takes_finite_numbers_only(agent: gdi.Agent, wrong: float) -> None:
    with pytest.raises(UserError, match="the observation or reward is NaN or infinite"):
        agent.act([0.0, wrong, 0.0, 0.0])
    with pytest.raises(UserError, match="the observation or reward is NaN or infinite"):
        agent.act([0.0] * 4, reward=wrong)


def test_training_takes_a_config() -> None:
    with pytest.raises(UserError, match=r"takes a config, not 'CartPole-v1': make one, as in gdi\.make_config"):
        gdi.train("CartPole-v1")  # type: ignore[arg-type]


def test_modules_are_found_by_their_whole_names_without_torch() -> None:
    code = (
        "import sys, gdi\n"
        "assert 'gdi.config' not in sys.modules\n"
        "print(gdi.config.UniformConfig().kind, gdi.errors.UserError.__name__)\n"
        "assert 'torch' not in sys.modules\n"
        "print(gdi.policy.__name__)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.split() == ["uniform", "UserError", "gdi.policy"]


def test_a_folder_with_other_files_is_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    words = ["train", "--env", "Toy/Chain-v0", "--run-dir", str(tmp_path)]
    assert error_line(words, capsys).endswith("holds other files: choose another --run-dir.\n")


def test_the_memory_plan_leaves_out_what_rounds_to_nothing() -> None:
    plan = MemoryPlan({"sequences": GIB, "batch": GIB // 1000, "program": GIB // 2}, 0)
    assert plan.summary() == "Memory: at most about 1.5 GiB (sequences 1.00, program 0.50)"


def test_a_refusal_of_trust_says_that_the_config_was_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny_config("own_envs:Own", steps=40)
    run_dir = gdi.train(config, tmp_path / "run").run_dir
    path = run_dir / "config.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "env": {**stored["env"], "id": "strange_envs:Own"}}))
    changed = "Its seal does not match: config.json was changed since gdi wrote it, or another user wrote it."
    assert changed in error_line(["evaluate", str(run_dir)], capsys)
    (run_dir / ".seal").unlink()
    assert "seal" not in error_line(["evaluate", str(run_dir)], capsys)
