"""The Ray runtime: in lockstep the local run, bit by bit; and no lost process or node ends a run or bends its data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gdi
from gdi.config import Config
from gdi.errors import Diverged, UserError
from gdi.placement import PlacementConfig
from gdi.runtime.faults import Stalled
from gdi.types import Index
from helpers import Listener, fails, network_of, read_lines, stop_after, tiny_config, with_lstm

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

QUICK = PlacementConfig(stall_seconds=120.0, hang_seconds=60.0)
LOCKSTEP = replace(QUICK, lockstep=True)
BEHIND = ("ActorWorker", "ControllerWorker", "ParameterWorker")  # the learner goes first


@pytest.fixture(scope="module")
def flag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that tells ray_worlds whether to hang."""
    return tmp_path_factory.mktemp("worlds") / "flag"


@pytest.fixture
def _ray(flag: Path) -> None:
    """One Ray for most tests of a process; training connects to what is there. Its workers know ray_worlds."""
    if not ray.is_initialized():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_WORLDS_FLAG", str(flag))
            patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
            priority = {"worker_niceness": 0}  # as a run's own Ray has it
            ray.init(
                address="local", num_cpus=16, include_dashboard=False, log_to_driver=False, _system_config=priority
            )


@pytest.fixture(scope="module", autouse=True)
def _end() -> Iterator[None]:
    yield
    ray.shutdown()


class At(Listener):
    """Does something once, when the run has come that far."""

    def __init__(self, steps: int, act: Callable[[], object], stop_at_notice: str = "") -> None:
        super().__init__()
        self._steps, self._act, self._stop_at_notice = steps, act, stop_at_notice
        self.seen: list[dict[str, Any]] = []

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        if event["kind"] == "notice" and self._stop_at_notice and self._stop_at_notice in event["text"]:
            os.kill(os.getpid(), signal.SIGTERM)
        if event["kind"] == "train":
            self.seen.append(event)
        if event["kind"] == "progress" and event["steps"] >= self._steps:
            act, self._act = self._act, lambda: None
            act()


class Both:
    """Two consoles at once."""

    def __init__(self, *consoles: Listener) -> None:
        self._consoles = consoles

    def event(self, event: dict[str, Any]) -> None:
        for console in self._consoles:
            console.event(event)

    def episode(self, steps: int, episode: Any) -> None: ...

    def close(self) -> None: ...


def processes(worker: str) -> list[int]:
    """Those of this kind that live, in the Ray that this process is connected to."""
    from ray._private.state import actors

    found = [actor for actor in actors().values() if actor["State"] == "ALIVE"]
    return [actor["Pid"] for actor in found if actor["ActorClassName"] == worker]


def niceness_of(worker: str) -> set[int]:
    """The niceness of all its threads."""
    threads = [int(thread) for pid in processes(worker) for thread in os.listdir(f"/proc/{pid}/task")]
    return {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}


def kill_one(worker: str) -> Callable[[], None]:
    return lambda: os.kill(processes(worker)[-1], signal.SIGKILL)


def without_ray(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if not name.startswith("ray/")} for line in lines]


def atari_config() -> Config:
    config = gdi.make_config("gdi-i3", "pong", scale="atari-cpu", steps=4 * 8 * 10, seed=3)
    return replace(
        config,
        env=replace(config.env, num_envs=4, max_episode_steps=12),  # cut, so that episodes end within the test
        network=replace(config.network, hidden_units=16, lstm_units=8),
        data=replace(config.data, batch_size_sequences=4, sequence_steps=8, replay=2, replay_span_windows=2),
        optimizer=replace(config.optimizer, warmup_updates=2),
        evaluation=replace(config.evaluation, every_steps=160, episodes=2),
        run=replace(config.run, log_every_steps=100, checkpoint_every_steps=100, threads=1, device="cpu"),
    )


CASES = {
    # θ is pushed now and then, and several updates fall due at once: the actor must see the one that was pushed.
    "minatar": tiny_config(steps=600, push_every_updates=3),
    "minatar-h3-lstm": with_lstm(tiny_config(preset="gdi-h3", steps=400, burn_in_steps=3)),
    "atari": atari_config(),
}


@pytest.mark.usefixtures("_ray")
@pytest.mark.parametrize("case", CASES)
def test_lockstep_is_the_local_run_bit_by_bit(case: str, tmp_path: Path) -> None:
    config = CASES[case]
    local = gdi.train(config, tmp_path / "local")
    remote = gdi.train(config, tmp_path / "ray", runtime="ray", placement=LOCKSTEP)
    assert local.updates >= 20
    assert (remote.steps, remote.updates, remote.evaluation) == (local.steps, local.updates, local.evaluation)
    states = [newest(run.run_dir)["system"] for run in (local, remote)]
    for part in ("learner", "controllers", "parameters"):
        assert_equal(states[0][part], states[1][part])
    assert without_ray(read_lines(remote.run_dir)) == read_lines(local.run_dir)
    assert (remote.run_dir / "episodes.csv").read_text() == (local.run_dir / "episodes.csv").read_text()


def newest(run_dir: Path) -> dict[str, Any]:
    from gdi.runtime.checkpoint import CheckpointStore

    state = CheckpointStore(run_dir / "checkpoints", 3, pytest.fail).newest()
    assert state is not None
    return state


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("_ray")
def test_several_actors_train_every_transition_and_end_exactly(tmp_path: Path) -> None:
    """Asked for 5,000 steps: sampled exactly, each trained replay times, whatever the order in which windows came."""
    config = tiny_config(steps=5000)  # so many that the second has started long before the end
    niceness: dict[str, set[int]] = {}
    console = At(4000, lambda: niceness.update({worker: niceness_of(worker) for worker in ("LearnerWorker", *BEHIND)}))
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=replace(QUICK, actors=2), console=console)
    assert result.finished
    assert all(min(niceness[worker]) > max(niceness["LearnerWorker"]) for worker in BEHIND), niceness
    assert result.steps == 5000
    state = newest(result.run_dir)["system"]
    assert int(state["learner"]["trained_transitions"]) == config.data.replay * 5000
    assert len(state["collector"]["windows"]) == 0
    lines = read_lines(result.run_dir)
    training = [line for line in lines if line["kind"] == "train"]
    assert max(line["ray/actors"] for line in training) == 2
    assert max(line["ray/queue_windows"] for line in training) <= 2 * QUICK.queue_windows - 1
    envs = {line.split(",")[1] for line in (result.run_dir / "episodes.csv").read_text().splitlines()[1:]}
    assert envs == {str(env) for env in range(config.env.num_envs)}  # four of one actor, four of the other
    # The best checkpoint is that of the parameters which were evaluated, though training went on meanwhile.
    assert gdi.load(result.run_dir, best=True).steps in {
        line["steps"] for line in lines if line["kind"] == "evaluation"
    }


@pytest.mark.usefixtures("_ray")
def test_a_hung_environment_is_killed_and_replaced(flag: Path, tmp_path: Path) -> None:
    flags = [flag, flag.with_name("flag.start")]
    for each in flags:
        each.touch()  # nobody hangs until it is removed
    placement = replace(QUICK, actors=2, hang_seconds=4.0)
    console = At(300, lambda: [each.unlink() for each in flags], stop_at_notice="did not start")
    config = seldom(tiny_config("ray_worlds:HangsAtStart-v0", steps=1_000_000))  # the other has enough to do meanwhile
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=console)
    assert result.steps > 300
    assert any("for more than 4 s and was killed" in text for text in console.notices), console.notices
    assert any("did not start within 4 s and was killed" in text for text in console.notices), console.notices
    assert console.seen[-1]["ray/replaced_total"] >= 1
    assert console.seen[-1]["ray/dropped_windows_total"] >= 1


@pytest.mark.usefixtures("_ray")
def test_a_run_can_be_stopped_while_no_window_comes(
    flag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gdi.runtime.ray.pool.SAVE_SECONDS", 1.0)  # there is an actor that never answers
    flag.touch()

    def hang_then_stop() -> None:
        flag.unlink()
        Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    console = At(300, hang_then_stop)
    placement = replace(QUICK, hang_seconds=30.0)
    config = seldom(tiny_config("ray_worlds:Hangs-v0", steps=1_000_000))
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=console)
    assert not result.finished
    assert flag.exists(), "nobody hung"
    assert console.notices == [], "it stopped only after the actor was replaced"
    assert newest(result.run_dir)["system"]["steps"] == result.steps


@pytest.mark.usefixtures("_ray")
@pytest.mark.parametrize(
    ("workers", "learners"), [(["LearnerWorker"], 2), (["ControllerWorker", "ParameterWorker"], 1)], ids=str
)
def test_a_lost_central_part_goes_back_to_the_newest_checkpoint(
    workers: list[str], learners: int, tmp_path: Path
) -> None:
    config = tiny_config(steps=1600)
    config = replace(config, run=replace(config.run, log_every_steps=100))  # lines newer than the newest checkpoint
    consoles = [At(1300 - 500 * i, kill_one(worker)) for i, worker in enumerate(workers)]
    console = consoles[0]
    placement = replace(QUICK, learners=learners)
    result = gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=Both(*consoles))
    assert result.finished
    assert result.steps == 1600
    back = sum("Going back to the newest checkpoint" in text for text in console.notices)
    assert back == len(workers), console.notices
    state = newest(result.run_dir)["system"]
    assert int(state["learner"]["trained_transitions"]) == config.data.replay * 1600
    steps = [line["steps"] for line in read_lines(result.run_dir) if line["kind"] == "train"]
    assert steps == sorted(set(steps))  # what was logged after the checkpoint was taken back
    assert "lost" in (result.run_dir / "notices.log").read_text()


class Recorded:
    """A handle of an actor that does nothing, whose references are the names of what was asked."""

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *_: name)


def pool_of(placement: PlacementConfig, wanted: Callable[[], int]) -> Any:
    from gdi.runtime.ray.pool import ActorPool

    return ActorPool(lambda *_: Recorded(), placement, 100, wanted, lambda _: None, lambda: None)


def test_an_actor_that_waits_for_a_processor_is_not_taken_for_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time begins when its process lives."""
    there: list[str] = []
    now = [0.0]
    lost: list[str] = []
    monkeypatch.setattr("gdi.runtime.ray.pool._finished", lambda references: [r for r in references if r in there])
    monkeypatch.setattr("gdi.runtime.ray.pool.time", SimpleNamespace(monotonic=lambda: now[0]))
    pool = pool_of(replace(QUICK, hang_seconds=10.0), lambda: 1)
    monkeypatch.setattr(pool, "_lose", lambda member, why: lost.append(why))
    pool.start()
    for now[0] in (20.0, 40.0):
        pool._kill_hung()
    there.append("__ray_ready__")
    for now[0] in (50.0, 59.0):
        pool._kill_hung()
    assert lost == []
    now[0] = 61.0
    pool._kill_hung()
    assert lost == ["it did not start within 10 s and was killed"]


def test_who_leaves_delivers_first(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[object] = []
    monkeypatch.setattr("gdi.runtime.ray.pool.ray.kill", killed.append)
    wanted = [2]
    pool = pool_of(QUICK, lambda: wanted[0])
    pool.start()
    leaver = pool._members[1]
    leaver.tasks.append("a window")
    wanted[0] = 1
    pool._follow_wanted()
    assert killed == []
    leaver.tasks.clear()
    pool._follow_wanted()
    assert killed == [leaver.handle]
    assert list(pool._members) == [0]


def test_saving_keeps_a_state_not_yet_continued_and_does_not_wait_for_a_hung_actor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("gdi.runtime.ray.pool._finished", lambda _, seconds: waited.append(seconds) or [])
    pool = pool_of(replace(QUICK, hang_seconds=300.0, queue_windows=2), lambda: 2)
    pool.start({1: {"generator": 5}})
    pool._members[0].ready = True  # and never answers
    assert pool.state_dicts() == {1: {"generator": 5}}
    assert waited == [10.0]


def seldom(config: Config) -> Config:
    """Checkpoints and evaluations at the end only."""
    return replace(
        config,
        evaluation=replace(config.evaluation, every_steps=10**6),
        run=replace(config.run, checkpoint_every_steps=10**6),
    )


@pytest.mark.usefixtures("_ray")
def test_actors_join_and_leave_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gdi.cli.main import main

    folder = tmp_path / "run"

    def want(actors: int) -> Callable[[], None]:
        return lambda: main(["actors", str(folder), str(actors)])

    placement = replace(QUICK, envs_per_actor=4)
    console, later = At(500, want(3)), At(15_000, want(1))
    config = seldom(tiny_config(steps=18_000))
    result = gdi.train(config, folder, runtime="ray", placement=placement, console=Both(console, later))
    assert result.steps == 18_000
    counts = [line["ray/actors"] for line in console.seen]
    assert counts[0] == 1
    assert max(counts) == 3
    assert counts[-1] == 1
    assert console.seen[-1]["ray/dropped_windows_total"] == 0  # who leaves delivers first
    capsys.readouterr()
    assert "nobody is training" in fails(["actors", str(folder), "2"], capsys)


@pytest.mark.usefixtures("_ray")
def test_more_actors_than_there_is_room_for_cost_nothing(tmp_path: Path) -> None:
    """The one that waits for ever gets no share of the steps, and a run saved with overlap goes on here."""
    config = tiny_config(steps=1500)
    config = replace(config, run=replace(config.run, overlap=True))
    gdi.train(config, tmp_path / "run", console=stop_after(700))
    placement = replace(QUICK, actors=2, actor_cpus=9.0, stall_seconds=60.0)
    result = gdi.train(config, tmp_path / "run", resume=True, runtime="ray", placement=placement)
    assert result.finished
    assert result.steps == 1500
    assert {line["ray/actors"] for line in read_lines(result.run_dir) if "ray/actors" in line} == {1}


@pytest.mark.usefixtures("_ray")
def test_two_learners_are_one_learner_with_the_whole_batch(tmp_path: Path) -> None:
    """Gradients summed over both; the last batch of the run is smaller and uneven."""
    config = tiny_config(steps=600, batch_size_sequences=7)
    alone = gdi.train(config, tmp_path / "alone", runtime="ray", placement=LOCKSTEP)
    both = gdi.train(config, tmp_path / "both", runtime="ray", placement=replace(LOCKSTEP, learners=2))
    assert both.updates == alone.updates
    one, two = network_of(alone.run_dir), network_of(both.run_dir)
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-3, atol=2e-5, err_msg=name)
    first, second = (read_lines(run.run_dir)[0] for run in (alone, both))
    for name in ("loss/v", "loss/q", "loss/policy", "optimizer/gradient_norm", "actor/parameter_lag_updates"):
        assert second[name] == pytest.approx(first[name], rel=1e-3, abs=1e-6), name


class Asked:
    """A controller that draws 0, 1, 2, ... and remembers for whom."""

    def __init__(self) -> None:
        self.requests: list[list[int]] = []
        self._drawn = 0

    def __call__(self, envs: list[int]) -> list[Index]:
        self.requests.append(envs)
        self._drawn += len(envs)
        return [(float(n), 0.0, 0.0) for n in range(self._drawn - len(envs), self._drawn)]


def test_indices_are_drawn_ahead_as_many_as_the_window_before_took() -> None:
    from gdi.runtime.ray.acting import ProposedIndices

    ask = Asked()
    indices = ProposedIndices(ask, slots=1, ahead=True)
    indices.begin_window()
    got = [*indices.propose([0, 1, 2]), *indices.propose([1]), *indices.propose([2])]
    assert ask.requests == [[0, 0, 0], [0], [0]]  # the first window knows nothing yet
    indices.begin_window()
    got += [*indices.propose([0]), *indices.propose([1, 2]), *indices.propose([0])]
    assert ask.requests[3:] == [[0] * 5]  # 5 in the window before, 4 used
    assert [index[0] for index in got] == [0, 1, 2, 3, 4, 5, 6, 7, 8]  # each is used once, in order
    indices.begin_window()
    assert indices.propose([0])[0][0] == 10  # not 9: it was drawn a window ago
    assert ask.requests[4:] == [[0] * 4]


def test_every_environment_keeps_its_own_controller() -> None:
    from gdi.runtime.ray.acting import ProposedIndices

    ask = Asked()
    indices = ProposedIndices(ask, slots=8, ahead=True)
    indices.begin_window()
    indices.propose([4, 5])
    indices.propose([4])
    indices.begin_window()
    first, second = indices.propose([5])[0], indices.propose([4, 4])
    # Nothing is drawn ahead: a slot may stand for one environment's place in a fixed order.
    assert ask.requests == [[4, 5], [4], [5], [4, 4]]
    assert [first[0], *(index[0] for index in second)] == [3, 4, 5]


def test_without_drawing_ahead_every_index_is_drawn_when_it_is_needed() -> None:
    from gdi.runtime.ray.acting import ProposedIndices

    ask = Asked()
    indices = ProposedIndices(ask, slots=1, ahead=False)
    for _ in range(2):
        indices.begin_window()
        indices.propose([0, 1])
        indices.propose([1])
    assert ask.requests == [[0, 0], [0], [0, 0], [0]]


TRAIN = [
    *("--env=MinAtar/Breakout-v0", "--steps=200000", "--env.num-envs=8", "--data.sequence-steps=5"),
    *("--data.batch-size-sequences=8", "--network.hidden-units=16", "--evaluation.episodes=2", "--run.threads=1"),
    *("--run.checkpoint-every-steps=500", "--evaluation.every-steps=1000000"),
]


def test_an_environment_that_always_fails_stops_the_run_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray.shutdown()  # a Ray of its own, whose processes know this folder's modules
    monkeypatch.setattr("gdi.runtime.ray.pool.FAILURES_PER_ACTOR", 2)  # every start of a process takes seconds
    config = tiny_config("ray_worlds:Fails-v0", steps=1200)
    with pytest.raises(Stalled, match="3 actors in a row failed") as caught:
        gdi.train(config, tmp_path / "run", runtime="ray", placement=QUICK)
    assert "the lever broke" in str(caught.value)
    assert "ray_worlds.py" in str(caught.value)  # where, too


@pytest.mark.usefixtures("_ray")
def test_an_environment_that_is_not_finite_is_bad_input_as_it_is_locally(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gave a reward that is not finite"):
        gdi.train(tiny_config("ray_worlds:NotFinite-v0"), tmp_path / "run", runtime="ray", placement=QUICK)


@pytest.mark.usefixtures("_ray")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 1e20, "batch_size_sequences": 16, "replay": 1, "replay_span_windows": 1}, "policy is not"),
        ({"learning_rate": 1e30, "batch_size_sequences": 2, "max_nonfinite_updates": 1}, "in a row were not finite"),
    ],
    ids=["acting", "learning"],
)
def test_a_divergence_is_told_and_saved_as_it_is_locally(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    config = tiny_config(warmup_updates=0, **settings)
    with pytest.raises(Diverged, match=message):
        gdi.train(config, tmp_path / "run", runtime="ray", placement=QUICK)
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


def test_losing_the_driver_loses_what_is_newer_than_the_checkpoint_and_resume_takes_other_actors(
    tmp_path: Path,
) -> None:
    """SIGKILL of the driver; then resumed with two actors for one; then by the local runtime."""
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "gdi.cli.main", "train", *TRAIN, "--run-dir", str(folder), "--runtime", "ray"]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 180
    while len(list(folder.glob("checkpoints/step-*"))) < 2:
        assert driver.poll() is None, driver.stderr and driver.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    driver.kill()
    driver.wait()
    before = newest(folder)["system"]["steps"]
    again = subprocess.Popen(
        [*command, "--resume", "--placement.actors", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while newest(folder)["system"]["steps"] <= before + 1000:
        assert again.poll() is None, again.stdout and again.stdout.read()
        assert time.monotonic() < deadline + 120
        time.sleep(0.5)
    again.send_signal(signal.SIGTERM)
    told = again.communicate(timeout=120)[0]
    assert again.returncode == 0, told
    assert "resuming at" in told
    assert "2 actors with 4 environments each" in told
    state = newest(folder)["system"]
    assert len(state["more_actors"]) == 1
    local = subprocess.Popen([*command[:-2], "--resume"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while newest(folder)["system"]["steps"] <= state["steps"]:
        assert time.monotonic() < deadline + 240
        assert local.poll() is None, local.stdout and local.stdout.read()
        time.sleep(0.5)
    local.send_signal(signal.SIGTERM)
    assert "resuming at" in local.communicate(timeout=60)[0]


def test_without_ray_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    argv = ["train", *TRAIN, "--runtime", "ray", "--run-dir", str(tmp_path / "run")]
    assert "'.[ray]'" in fails(argv, capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--ray-address", "auto"], "--ray-address needs --runtime ray"),
        (["--placement.actors", "2"], "--placement.… needs --runtime ray"),
        (["--runtime", "ray", "--placement.actors", "3"], "cannot share --env.num-envs 8"),
        (["--runtime", "ray", "--placement.actors", "0"], "--placement.actors must be greater than 0"),
        (["--runtime", "ray", "--placement.lockstep", "--placement.actors", "2"], "lockstep means one actor"),
        (["--runtime", "ray", "--placement.lockstep", "--run.overlap"], "--run.no-overlap"),
        (["--runtime", "slurm"], "invalid choice: 'slurm'"),
    ],
)
def test_bad_input(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in fails(["train", *TRAIN, *argv], capsys)


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "cannot reach the Ray cluster at '127.0.0.1:1'"), ("head", "neither auto nor host:port")],
)
def test_an_address_nobody_answers_is_one_line(
    address: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ray.shutdown()
    argv = ["train", *TRAIN, "--runtime", "ray", "--run-dir", str(tmp_path / "run"), "--ray-address", address]
    assert message in fails(argv, capsys)
    assert not (tmp_path / "run").exists()


def test_an_actor_then_a_node_are_lost_and_the_run_ends_as_others_do(tmp_path: Path) -> None:
    """Three nodes on this machine; SIGKILL of an actor's process, then of everything on a node that has an actor."""
    from ray.cluster_utils import Cluster

    config = seldom(tiny_config(steps=12_000))
    config = replace(config, evaluation=replace(config.evaluation, episodes=32))
    undisturbed = []
    for seed in range(4):
        evaluation = gdi.train(replace(config, seed=seed), tmp_path / f"local-{seed}").evaluation
        assert evaluation is not None
        undisturbed.append(evaluation.mean)
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

    def lose_a_node() -> None:
        from ray._private.state import actors

        homes = [a["Address"]["NodeID"] for a in actors().values() if a["State"] == "ALIVE"]
        lost = next(node for node in nodes if node.node_id in homes)
        threading.Thread(target=cluster.remove_node, args=(lost,), kwargs={"allow_graceful": False}).start()

    console = At(3_000, kill_one("ActorWorker"))
    later = At(6_000, lose_a_node)
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
    assert result.steps == 12_000
    assert newest(result.run_dir)["system"]["learner"]["trained_transitions"] == config.data.replay * 12_000
    assert console.seen[-1]["ray/replaced_total"] >= 2, console.notices
    assert console.seen[-1]["ray/dropped_windows_total"] >= 1
    assert sum("is lost and replaced" in text for text in console.notices) >= 2
    spread = max(undisturbed) - min(undisturbed)
    assert result.evaluation is not None
    assert min(undisturbed) - spread <= result.evaluation.mean <= max(undisturbed) + spread
