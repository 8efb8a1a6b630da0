"""No lost process or node ends a run on Ray or bends its data; what must end it is told as it is locally."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

import gdi
from gdi.cli.main import main
from helpers import tiny_config
from ray_runs import (
    QUICK,
    TRAIN,
    At,
    Both,
    When,
    assert_goes_back_once,
    below,
    kill_one,
    newest,
    seldom,
    until_there_are,
    wait_until,
)

pytest.importorskip("ray")
from ray_in_process import RayInProcess

pytestmark = pytest.mark.ray


@pytest.mark.usefixtures("own_ray")
def test_an_actor_then_a_node_are_lost_and_the_run_learns_as_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three nodes on this machine; SIGKILL of an actor's process, then of everything on a node that has an actor.

    One action of two is worth a point, ten times an episode. Undisturbed runs of this length reach 9.9 of 10.
    """
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the nodes find the environment
    config = seldom(tiny_config("ray_envs:Plain-v0", steps=2000))
    config = replace(config, evaluation=replace(config.evaluation, episodes=32))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()

    both_act = until_there_are(2, "ActorWorker")

    def lose_an_actor() -> None:
        both_act()
        kill_one("ActorWorker")()

    def lose_a_node() -> None:
        from ray._private.state import actors

        both_act()
        homes = [a["Address"]["NodeID"] for a in actors().values() if a["State"] == "ALIVE"]
        lost = next(node for node in nodes if node.node_id in homes)
        threading.Thread(target=cluster.remove_node, args=(lost,), kwargs={"allow_graceful": False}).start()

    console = At(500, lose_an_actor)
    later = When(lambda event: "replaced lost actor" in event.get("text", ""), lose_a_node)
    placement = replace(QUICK, actors=2, learner_cpus=0.5, evaluator_cpus=0.5)
    try:
        address = cluster.address
        result = gdi.train(
            config,
            tmp_path / "run",
            runtime="ray",
            placement=placement,
            ray_address=address,
            console=Both(console, later),
        )
    finally:
        cluster.shutdown()
    assert result.finished
    assert result.steps == 2000
    assert newest(result.run_dir)["system"]["learner"]["trained_transitions"] == config.data.replay * 2000
    assert console.seen[-1]["ray/replaced_total"] >= 2, console.notices
    assert console.seen[-1]["ray/dropped_windows_total"] >= 1
    assert sum("replaced lost actor" in text for text in console.notices) >= 2
    assert result.evaluation is not None
    assert result.evaluation.mean > 9.0  # by chance 5


@pytest.mark.kill
def test_losing_the_driver_loses_what_is_newer_than_the_checkpoint_and_resume_takes_other_actors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL of the driver, with which all of Ray dies; then resumed with two actors, and by the local runtime."""
    folder = tmp_path / "run"
    argv = ["train", *TRAIN, "--run-dir", str(folder)]
    on_ray = ["--runtime", "ray"]
    command = [sys.executable, "-m", "gdi.cli.main", *argv, *on_ray]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def saved_twice() -> bool:
        assert driver.poll() is None, driver.stderr and driver.stderr.read()
        return len(list(folder.glob("checkpoints/step-*"))) >= 2

    wait_until(saved_twice, 180)
    orphans = below(driver.pid) - {driver.pid}
    driver.kill()
    driver.communicate()
    # Ray's agents would stay for a minute.
    wait_until(lambda: not any(Path(f"/proc/{orphan}").exists() for orphan in orphans), 45)

    def resume(*more: str) -> str:
        """Until its steps are in a checkpoint, then SIGTERM; what it told."""
        before = newest(folder)["system"]["steps"]

        def stop_when_saved() -> None:
            try:
                wait_until(lambda: newest(folder)["system"]["steps"] > before)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        watcher = threading.Thread(target=stop_when_saved)
        watcher.start()
        assert main([*argv, "--resume", *more]) == 128 + signal.SIGTERM
        watcher.join()
        assert newest(folder)["system"]["steps"] > before
        return capsys.readouterr().out

    with monkeypatch.context() as patch:
        RayInProcess().install(patch)
        told = resume(*on_ray, "--placement.actors", "2")
    assert "resuming at" in told
    assert "2 actors with 4 environments each" in told
    assert len(newest(folder)["system"]["more_actors"]) == 1
    assert "resuming at" in resume()


@pytest.mark.usefixtures("shared_ray")
def test_a_lost_learner_goes_back_to_the_newest_checkpoint(tmp_path: Path) -> None:
    """One of two. For every other part see ``test_ray_in_process.py``: each new start takes four imports of torch."""
    console = At(250, kill_one("LearnerWorker"))
    assert_goes_back_once(console, tmp_path / "run", replace(QUICK, learners=2))
    assert "lost" in (tmp_path / "run" / "notices.log").read_text()


@pytest.mark.usefixtures("shared_ray")
def test_a_hung_environment_is_killed_and_replaced(flag: Path, tmp_path: Path) -> None:
    flags = [flag, flag.with_name("flag.start")]
    for each in flags:
        each.touch()  # nobody hangs until it is removed
    placement = replace(QUICK, actors=2, hang_seconds=1.5)
    console = At(300, lambda: [each.unlink() for each in flags], stop_at_notice="did not start")
    config = seldom(tiny_config("ray_envs:HangsAtStart-v0", steps=1_000_000))  # the other has enough to do meanwhile
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=console)
    assert result.steps > 300
    assert any("for more than 1.5 s and was killed" in text for text in console.notices), console.notices
    assert any("did not start within 1.5 s and was killed" in text for text in console.notices), console.notices
    assert console.seen[-1]["ray/replaced_total"] >= 1
    assert console.seen[-1]["ray/dropped_windows_total"] >= 1


@pytest.mark.usefixtures("shared_ray")
def test_a_run_can_be_stopped_while_no_window_comes(
    flag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gdi.runtime.ray.pool.SAVE_SECONDS", 1.0)  # there is an actor that never answers
    flag.touch()

    def hang_then_stop() -> None:
        flag.unlink()
        Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    console = At(300, hang_then_stop)
    placement = replace(QUICK, hang_seconds=30.0)
    config = seldom(tiny_config("ray_envs:Hangs-v0", steps=1_000_000))
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=console)
    assert not result.finished
    assert flag.exists(), "nobody hung"
    assert console.notices == [], "it stopped only after the actor was replaced"
    assert newest(result.run_dir)["system"]["steps"] == result.steps
