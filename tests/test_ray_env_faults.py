"""Faults of environments on Ray: told, saved and resumed as in a local run."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest

import gdi
from gdi.envs.base import StepResult
from gdi.envs.minatar import MinAtarEnv
from gdi.errors import EnvironmentFaultError
from gdi.types import Array
from helpers import saved_network, tiny_config, with_lstm
from ray_envs import FAULTS
from ray_runs import LOCKSTEP, QUICK, newest
from test_env_faults import TOLD, TRACES, faulty

pytest.importorskip("ray")
from ray_in_process import RayInProcess


def assert_told_saved_and_resumed(kind: str, run_dir: Path) -> None:
    """The run on Ray stops and is saved, and the local runtime brings it to its end."""
    config = faulty(kind)
    with pytest.raises(EnvironmentFaultError) as caught:
        gdi.train(config, run_dir, runtime="ray", placement=QUICK)
    assert str(caught.value) == f"environment 'ray_envs:{kind}-v0', {TOLD[kind]}"
    assert TRACES.get(kind, "") in (run_dir / "faults.log").read_text()
    result = gdi.train(config, run_dir, resume=True)
    assert (result.steps, result.finished) == (400, True)
    assert newest(run_dir)["system"]["learner"]["trained_transitions"] == 400 * config.data.replay


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_fault_in_a_process_saves_and_stops(flag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag.unlink(missing_ok=True)
    monkeypatch.setenv("RAY_ENVS_FLAG", str(flag))
    assert_told_saved_and_resumed("HangsOnce", tmp_path / "run")


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_saves_and_stops(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ENVS_FLAG", str(tmp_path / "flag"))
    with monkeypatch.context() as patch:
        RayInProcess().install(patch)
        assert_told_saved_and_resumed(kind, tmp_path / "run")


def test_a_transient_fault_leaves_no_trace_in_lockstep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MinAtar can be saved: the run that failed once equals the local run that did not."""
    config = with_lstm(tiny_config(steps=400, burn_in_steps=2))
    undisturbed = gdi.train(config, tmp_path / "undisturbed").run_dir
    original, calls = MinAtarEnv.step, count(1)

    def failing(self: MinAtarEnv, action: Array) -> StepResult:
        """Fail in the middle: half of the games have been stepped."""
        if self.num_envs == 8 and next(calls) == 34:
            for game in self._games[:4]:
                game.act(0)
            raise ValueError("a cosmic ray")
        return original(self, action)

    monkeypatch.setattr(MinAtarEnv, "step", failing)
    RayInProcess().install(monkeypatch)
    with pytest.raises(EnvironmentFaultError, match="a cosmic ray"):
        gdi.train(config, tmp_path / "run", runtime="ray", placement=LOCKSTEP)
    assert 0 < newest(tmp_path / "run")["system"]["steps"] < 400
    gdi.train(config, tmp_path / "run", resume=True, runtime="ray", placement=LOCKSTEP)
    assert (tmp_path / "run" / "episodes.csv").read_bytes() == (undisturbed / "episodes.csv").read_bytes()
    for name, value in saved_network(tmp_path / "run").items():
        np.testing.assert_array_equal(value, saved_network(undisturbed)[name])
