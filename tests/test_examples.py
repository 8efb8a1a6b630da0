"""The examples: a user's own algorithm and controller run, learn, and survive a kill, without a change in ``src``."""

from __future__ import annotations

import os
import re
import runpy
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdi
from gdi.cli.main import main
from gdi.config import Config
from helpers import RecordingConsole, error_line, read_metric_lines, saved_network
from processes import run_child

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ["my_algorithm", "my_controller"]


@pytest.fixture(params=NAMES)
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of an example, importable by its name as it is for a user who works in that folder."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return __import__(request.param)


def tiny(config: Config) -> Config:
    """A second on MinAtar."""
    return replace(
        config,
        env=replace(config.env, num_envs=4),
        network=replace(config.network, hidden_units=16),
        data=replace(config.data, batch_size_sequences=4, sequence_steps=5),
        evaluation=replace(config.evaluation, every_steps=600, episodes=2),
        run=replace(config.run, log_every_steps=200, checkpoint_every_steps=300, threads=1, device="cpu"),
    )


@pytest.mark.long
def test_the_algorithm_solves_cartpole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    evaluation = runpy.run_path(str(EXAMPLES / "my_algorithm.py"), run_name="__main__")["result"].evaluation
    assert evaluation.mean >= 400


class Killer(RecordingConsole):
    """A console that kills its process once the run has reached 450 steps, with lines newer than its checkpoint."""

    def event(self, event: dict[str, Any]) -> None:
        if event["kind"] == "progress" and event["steps"] >= 450:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.kill
def test_killed_and_resumed_equals_unbroken(example: Any, tmp_path: Path) -> None:
    config = tiny(example.make_config("MinAtar/Breakout-v0", steps=600, seed=3))
    whole = gdi.train(config, tmp_path / "whole").run_dir
    folder = tmp_path / "killed"
    killed = run_child(lambda: bool(gdi.train(config, folder, console=Killer())), tmp_path / "output")
    assert killed.code == -signal.SIGKILL
    resumed = gdi.train(config, folder, resume=True)
    assert resumed.finished
    assert read_metric_lines(folder) == read_metric_lines(whole)
    assert (folder / "episodes.csv").read_bytes() == (whole / "episodes.csv").read_bytes()
    for name, value in saved_network(whole).items():
        np.testing.assert_array_equal(value, saved_network(folder)[name])


def test_the_algorithm_plays_only_valid_actions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Taxi tells a mask in ``info``."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import my_algorithm

    config = tiny(my_algorithm.make_config("Taxi-v4", steps=1200))
    folder = gdi.train(config, tmp_path / "run").run_dir
    (line, *_) = [line for line in read_metric_lines(folder) if line["kind"] == "train"]
    assert np.isfinite(line["loss/policy"])


@pytest.mark.parametrize("name", ["Elite", "Reinforce"])
def test_the_code_of_the_page_on_architecture_trains(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each block runs as it is pasted; its training is then made short."""
    page = (EXAMPLES.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert len(blocks) == 2
    (block,) = [block for block in blocks if f"import {name}" in block]
    (tmp_path / f"pasted_{name}.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(tmp_path))
    begun: list[Config] = []
    with monkeypatch.context() as patch:
        patch.setattr(gdi, "train", begun.append)
        pasted = __import__(f"pasted_{name}")
    assert begun == [pasted.config]
    config = replace(tiny(pasted.config), steps=600)
    assert gdi.train(config, tmp_path / "run").finished


def test_e_can_search_the_axis_of_the_users_algorithm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its one knob becomes an axis, and the paper's controller learns on it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import my_algorithm

    config = tiny(my_algorithm.make_config("MinAtar/Breakout-v0", steps=600))
    axis = replace(config.index_space.inverse_tau, search=True)
    searched = replace(
        config, index_space=my_algorithm.Space(axis), controller=gdi.make_config(scale="minatar").controller
    )
    folder = gdi.train(searched, tmp_path / "run").run_dir
    assert (folder / "episodes.csv").read_text().splitlines()[0].split(",")[2:4] == ["inverse_tau", "episode_return"]
    counts = [
        line["controller/inverse_tau/block_count"] for line in read_metric_lines(folder) if line["kind"] == "train"
    ]
    assert len(counts[-1]) == 40  # 4.0 / 0.1 blocks
    assert sum(counts[-1]) > 0


def test_a_run_with_ones_own_class_opens_for_its_maker_and_for_others_with_trust_only(
    example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = gdi.train(tiny(example.make_config("MinAtar/Breakout-v0", steps=300)), tmp_path / "run").run_dir
    assert main(["evaluate", str(folder), "--episodes", "1"]) == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
    capsys.readouterr()
    assert f"module {example.__name__}" in error_line(["evaluate", str(folder), "--episodes", "1"], capsys)
    assert main(["evaluate", str(folder), "--episodes", "1", "--trust"]) == 0
