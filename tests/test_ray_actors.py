"""Several actors on Ray: they share the steps exactly, and wait for room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gdi
from helpers import read_metric_lines, tiny_config
from ray_runs import QUICK, At, Both, newest, niceness_of, until_there_are

pytest.importorskip("ray")
pytestmark = pytest.mark.ray

BEHIND = ("ActorWorker", "ControllerWorker", "ParameterWorker")  # the learner goes first


@pytest.mark.usefixtures("shared_ray")
def test_several_actors_train_every_transition_and_end_exactly(tmp_path: Path) -> None:
    """Asked for 1,500 steps: sampled exactly, each trained replay times, whatever the order in which windows came.

    An actor that has no room gets no share of the steps, so the run does not wait for it.
    """
    config = tiny_config(steps=1500)
    # Of 8 CPUs four processes get 1.9 each, so the third actor waits for room as long as the run lasts.
    each = {"actor_cpus": 1.9, "learner_cpus": 1.9, "evaluator_cpus": 1.9}
    placement = replace(QUICK, actors=3, envs_per_actor=4, **each)
    niceness: dict[str, set[int]] = {}
    second = At(100, until_there_are(2, "ActorWorker"))
    console = At(900, lambda: niceness.update({worker: niceness_of(worker) for worker in ("LearnerWorker", *BEHIND)}))
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=Both(second, console))
    assert result.finished
    assert all(min(niceness[worker]) > max(niceness["LearnerWorker"]) for worker in BEHIND), niceness
    assert result.steps == 1500
    state = newest(result.run_dir)["system"]
    assert int(state["learner"]["trained_transitions"]) == config.data.replay * 1500
    assert len(state["collector"]["windows"]) == 0
    lines = read_metric_lines(result.run_dir)
    training = [line for line in lines if line["kind"] == "train"]
    assert max(line["ray/actors"] for line in training) == 2
    assert training[-1]["ray/replaced_total"] == training[-1]["ray/dropped_windows_total"] == 0  # nobody hung
    assert max(line["ray/queue_windows"] for line in training) <= 2 * QUICK.queue_windows - 1
    envs = {line.split(",")[1] for line in (result.run_dir / "episodes.csv").read_text().splitlines()[1:]}
    assert envs == {str(env) for env in range(config.env.num_envs)}  # four of one actor, four of the other
    # The best checkpoint is that of the parameters which were evaluated, though training went on meanwhile.
    assert gdi.load(result.run_dir, best=True).steps in {
        line["steps"] for line in lines if line["kind"] == "evaluation"
    }
