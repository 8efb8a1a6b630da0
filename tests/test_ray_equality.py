"""The Ray runtime in lockstep is the local run, bit by bit; and two learners are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gdi
from gdi.config import Config
from helpers import read_metric_lines, saved_network, tiny_config
from ray_runs import LOCKSTEP, assert_same_runs, atari_config
from systems import small

pytest.importorskip("ray")
pytestmark = pytest.mark.ray


@pytest.mark.usefixtures("shared_ray")
def test_lockstep_in_processes_is_the_local_run_bit_by_bit(tmp_path: Path) -> None:
    local = gdi.train(atari_config(), tmp_path / "local")
    assert_same_runs(local, gdi.train(atari_config(), tmp_path / "ray", runtime="ray", placement=LOCKSTEP))


@pytest.mark.usefixtures("shared_ray")
def test_two_learners_are_one_learner_with_the_whole_batch(tmp_path: Path) -> None:
    """Gradients summed over both; the last batch of the run is smaller and uneven.

    The one learner is the local run's, which is that of a run in lockstep: see above.
    """
    assert_two_are_one(tiny_config(steps=400, batch_size_sequences=7), tmp_path, ("loss/v", "loss/q", "loss/policy"))


@pytest.mark.usefixtures("shared_ray")
def test_two_learners_with_a_copy_of_the_memory_each_are_one(tmp_path: Path) -> None:
    config = replace(small("dqn", batch_size_sequences=7), steps=500)
    assert_two_are_one(config, tmp_path, ("loss/td",))


def assert_two_are_one(config: Config, tmp_path: Path, losses: tuple[str, ...]) -> None:
    alone = gdi.train(config, tmp_path / "alone")
    both = gdi.train(config, tmp_path / "both", runtime="ray", placement=replace(LOCKSTEP, learners=2))
    assert both.updates == alone.updates
    one, two = saved_network(alone.run_dir), saved_network(both.run_dir)
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-3, atol=2e-5, err_msg=name)
    first, second = (read_metric_lines(run.run_dir)[0] for run in (alone, both))
    for name in (*losses, "optimizer/gradient_norm", "actor/parameter_lag_updates"):
        assert second[name] == pytest.approx(first[name], rel=1e-3, abs=1e-6), name
