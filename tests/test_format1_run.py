"""A run folder of format 1, older than the present configs and checkpoints, loads, evaluates, plays and resumes.

``tests/data/format1/run-minatar`` was stopped midway by commit a6c9eb9; ``expected.json`` holds what that commit made
of it, and says how. That θ is equal to the bit is shown by ``tools/goldens.py``, on one machine.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import gdi
from gdi.runtime.folder import read_config
from gdi.runtime.upgrade import upgrade_state

DATA = Path(__file__).parent / "data" / "format1"
EXPECTED = json.loads((DATA / "expected.json").read_text())


def test_it_evaluates_to_the_same_returns() -> None:
    evaluation = gdi.load(DATA / "run-minatar").evaluate(episodes=4, seed=3).to_dict()
    assert evaluation == {name: EXPECTED["evaluation"][name] for name in evaluation}


def test_it_plays_the_same_actions() -> None:
    agent = gdi.load(DATA / "run-minatar", seed=5)
    rng = np.random.default_rng(0)
    actions = []
    for t in range(50):
        if t % 10 == 0:
            agent.reset()
        observation = rng.integers(0, 2, agent.spec.frame_shape).astype(bool)
        actions.append(agent.act(observation, float(t % 3 - 1)))
    assert actions == EXPECTED["actions"]


def test_it_resumes_to_the_same_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / "run-minatar", folder)
    result = gdi.train(read_config(folder), folder, resume=True)
    assert result.finished
    assert result.updates == EXPECTED["updates"]
    assert hashlib.sha256((folder / "episodes.csv").read_bytes()).hexdigest() == EXPECTED["episodes_csv_sha256"]


def test_lambda_of_a_reset_row_becomes_the_ended_episodes() -> None:
    """Column 0 ends at step 1, so step 2 is a reset, which format 1 stored with the next episode's λ = 9."""
    episode_start = np.array([[False], [False], [False], [True], [False]])  # row 3 starts an episode
    index = np.array([1, 1, 9, 9], np.float32).reshape(4, 1, 1)
    kept = {"uses_scheduled": 1, "arrays": {"index": index, "episode_start": episode_start}}
    state = {"system": {"collector": {"windows": {"0": kept}}}, "run": {"evaluation": None}}
    upgraded = upgrade_state(state, 1)["system"]["collector"]["windows"]["0"]["arrays"]["index"]
    assert upgraded.ravel().tolist() == [1, 1, 1, 9, 9]


def test_the_present_format_is_left_alone() -> None:
    state = {"system": {}, "run": {}}
    assert upgrade_state(state, 2) is state


@pytest.mark.parametrize("name", ["episodes.csv", "metrics.jsonl", "config.json"])
def test_reading_writes_nothing(name: str) -> None:
    before = (DATA / "run-minatar" / name).read_bytes()
    gdi.load(DATA / "run-minatar").evaluate(episodes=1)
    assert (DATA / "run-minatar" / name).read_bytes() == before
