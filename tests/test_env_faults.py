"""Faults of environments: the run is saved and resumed, or goes on with a fresh copy. Nothing else is lost or bent."""

from __future__ import annotations

import csv
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gdi
import ray_envs
from gdi.cli.main import main
from gdi.config import Config, EnvConfig
from gdi.data.slots import SlotStore
from gdi.envs import make_env
from gdi.envs.actions import Actions
from gdi.envs.base import EnvSpec, StepResult, nothing_beside
from gdi.envs.guard import CopyGuard, Guard, Restarts, shape_problem
from gdi.envs.journal import Journal
from gdi.envs.minatar import MinAtarEnv
from gdi.envs.spaces import Observations
from gdi.envs.toy import make_toy
from gdi.envs.watchdog import HangError, Watchdog
from gdi.errors import EnvironmentFaultError, Fault, UserError
from gdi.evaluation import Evaluator
from gdi.types import Array
from helpers import RecordingConsole, error_line, make_actor, read_metric_lines, saved_network, tiny_config, with_lstm
from ray_runs import newest

RESULT = "step() must return observation, reward, terminated, truncated and info, and returned a tuple of 4"
TOLD = {
    "Raises": "copy 0, step 5 of its episode: ValueError: the lever broke",
    "WrongTuple": f"copy 0, step 5 of its episode: {RESULT}",
    "WrongShape": "copy 0, step 5 of its episode: the observation has the shape (4,) and must have (3,)",
    "TooLarge": "copy 0: the observation is NaN or infinite as float32",
    "HangsOnce": "copy 0, step 5 of its episode: no answer for 0.3 s (--env.timeout-seconds)",
    "ProcessDies": "copy 0, step 5 of its episode: a process of the environment died (EOFError)",
}
TRACES = {"Raises": 'raise ValueError("the lever broke")', "HangsOnce": "time.sleep(10_000)", "ProcessDies": "EOFError"}


def faulty(kind: str, *, restarts: int = 0, steps: int = 400) -> Config:
    config = tiny_config(f"ray_envs:{kind}-v0", steps=steps)
    timeout = 0.3 if kind == "HangsOnce" else 0.0
    return replace(config, env=replace(config.env, timeout_seconds=timeout, restart_on_error=restarts))


@pytest.fixture
def _fresh_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ENVS_FLAG", str(tmp_path / "flag"))


# A fault stops the run, which is saved and resumed.


@pytest.mark.usefixtures("_fresh_flag")
@pytest.mark.parametrize("kind", ray_envs.FAULTS)
def test_a_fault_saves_and_stops_and_a_resumed_run_ends(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = faulty(kind)
    with pytest.raises(EnvironmentFaultError) as caught:
        gdi.train(config, tmp_path / "run")
    assert str(caught.value) == f"environment 'ray_envs:{kind}-v0', {TOLD[kind]}"
    faults = (tmp_path / "run" / "faults.log").read_text()
    assert f"at 0 steps, {caught.value}\n" in faults
    assert TRACES.get(kind, "") in faults
    assert newest(tmp_path / "run")["system"]["steps"] == 0
    result = gdi.train(config, tmp_path / "run", resume=True)
    assert (result.steps, result.finished) == (400, True)
    assert newest(tmp_path / "run")["system"]["learner"]["trained_transitions"] == 400 * config.data.replay
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("_fresh_flag")
def test_the_command_says_it_in_one_line_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    argv = ["train", "--env=ray_envs:Raises-v0", "--steps=300", "--env.num-envs=2", f"--run-dir={folder}"]
    argv += ["--env.max-episode-steps=20", "--data.sequence-steps=5", "--data.batch-size-sequences=2"]
    argv += ["--evaluation.episodes=2", "--network.hidden-units=8", "--run.threads=1"]
    (tmp_path / "flag").touch()  # until the run is on its way
    at_100 = AtSteps(100, (tmp_path / "flag").unlink)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gdi.report.console.LiveConsole", lambda *_: at_100)
        assert main(argv) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("gdi: stopped: environment 'ray_envs:Raises-v0', copy ")
    assert f"the traceback in {folder}/faults.log. Continue with: gdi train --run-dir {folder} --resume" in err
    saved = newest(folder)["system"]["steps"]
    assert saved >= 100
    assert f"at {saved} steps, " in (folder / "faults.log").read_text()
    assert main(["train", f"--run-dir={folder}", "--resume"]) == 0
    assert "resuming at" in capsys.readouterr().out


class AtSteps(RecordingConsole):
    """A console that acts once, when the run has reached a number of steps."""

    def __init__(self, steps: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._steps, self._act = steps, act

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        if event["kind"] == "progress" and event["steps"] >= self._steps:
            act, self._act = self._act, lambda: None
            act()


def fail_once(monkeypatch: pytest.MonkeyPatch, call: int, copies: int | None = None) -> None:
    """Make MinAtar fail once, after a part of the games has been stepped, in this call with this many copies."""
    step, calls = MinAtarEnv.step, iter(range(10**9))

    def failing(self: MinAtarEnv, action: Array) -> StepResult:
        if copies in (None, self.num_envs) and next(calls) == call:
            for game in self._games[: self.num_envs // 2]:
                game.act(0)
            raise ValueError("a cosmic ray")
        return step(self, action)

    monkeypatch.setattr(MinAtarEnv, "step", failing)


def assert_equal_runs(one: Path, other: Path) -> None:
    assert read_metric_lines(one) == read_metric_lines(other)
    assert (one / "episodes.csv").read_bytes() == (other / "episodes.csv").read_bytes()
    for name, value in saved_network(one).items():
        np.testing.assert_array_equal(value, saved_network(other)[name])


LSTM = with_lstm(tiny_config(steps=400, burn_in_steps=2))
OVERLAP = replace(LSTM, run=replace(LSTM.run, overlap=True))
PULLS = tiny_config(steps=400, pull_every_steps=3, push_every_updates=3)


@pytest.mark.parametrize(
    ("config", "calls"),
    [(LSTM, (0, 4, 5, 33)), (OVERLAP, (0, 4, 5, 33)), (PULLS, (0, 7, 41))],
    ids=["lstm", "overlap", "seldom-pulls"],
)
def test_a_transient_fault_leaves_no_trace_if_the_environment_can_be_saved(
    config: Config, calls: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first window and later, in a window's first, last and any other step: as if nothing had been."""
    undisturbed = gdi.train(config, tmp_path / "undisturbed").run_dir
    for call in calls:
        with monkeypatch.context() as patch:
            fail_once(patch, call, copies=8)
            with pytest.raises(EnvironmentFaultError, match="a cosmic ray"):
                gdi.train(config, tmp_path / str(call))
            gdi.train(config, tmp_path / str(call), resume=True)
        assert_equal_runs(tmp_path / str(call), undisturbed)


def test_a_fault_in_an_evaluation_leaves_no_trace_either(
    tmp_path: Path, whole_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_once(monkeypatch, 3, copies=4)
    with pytest.raises(EnvironmentFaultError):
        gdi.train(tiny_config(), tmp_path / "run")
    assert 1000 <= newest(tmp_path / "run")["system"]["steps"] < 1040
    gdi.train(tiny_config(), tmp_path / "run", resume=True)
    assert_equal_runs(tmp_path / "run", whole_run)


def test_an_environment_that_fails_again_while_it_is_restored_starts_new_episodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, calls = MinAtarEnv.step, iter(range(10**9))

    def failing(self: MinAtarEnv, action: Array) -> StepResult:
        if self.num_envs == 8 and next(calls) in (33, 40):  # 40: the replay of the journal
            raise ValueError("a cosmic ray")
        return step(self, action)

    monkeypatch.setattr(MinAtarEnv, "step", failing)
    config = tiny_config(steps=600)
    with pytest.raises(EnvironmentFaultError, match="a cosmic ray"):
        gdi.train(config, tmp_path / "run")
    assert "env" not in newest(tmp_path / "run")["system"]["actor"]
    assert gdi.train(config, tmp_path / "run", resume=True).steps == 600


def test_a_fault_of_the_first_steps_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gymnasium.register("FailsAtOnce-v0", FailsAtOnce)
    told = error_line(["train", "--env=FailsAtOnce-v0", "--steps=100", f"--run-dir={tmp_path / 'run'}"], capsys)
    assert "'FailsAtOnce-v0', copy 0, step 1 of its episode: KeyError: 'lever'. It fails before the run" in told
    assert list(tmp_path.iterdir()) == []


class FailsAtOnce(ray_envs.MisbehavingEnv):
    def misbehave(self) -> None:
        raise KeyError("lever")


# A fresh copy instead.


@pytest.mark.usefixtures("_fresh_flag")
@pytest.mark.parametrize("kind", ray_envs.FAULTS)
def test_a_fresh_copy_is_counted_and_the_run_goes_on(kind: str, tmp_path: Path) -> None:
    config, console = faulty(kind, restarts=1), RecordingConsole()
    result = gdi.train(config, tmp_path / "run", console=console)
    assert (result.steps, result.finished) == (400, True)
    (told,) = console.notices
    where = TOLD[kind] if kind != "TooLarge" else "copy 0, step 5 of its episode: the observation is NaN or infinite"
    assert told.startswith(f"Started a fresh copy after a fault: environment 'ray_envs:{kind}-v0', {where}")
    lines = [line for line in read_metric_lines(result.run_dir) if line["kind"] == "train"]
    assert [line["env/restarts_total"] for line in lines] == [1] * len(lines)
    # The first window has 8 x 5 steps, of which the failed one is no transition.
    assert f"at {8 * 5 - 1} steps, environment" in (result.run_dir / "faults.log").read_text()
    with (result.run_dir / "episodes.csv").open() as file:
        lengths = [int(row["length_steps"]) for row in csv.DictReader(file)]
    assert set(lengths) == {10}  # the dropped episode is not among them


def test_restarts_end_and_the_count_is_in_the_checkpoint(tmp_path: Path) -> None:
    """``Fails`` fails in the fifth step of every episode of every copy: eight copies, five restarts."""
    config = faulty("Fails", restarts=5)
    with pytest.raises(EnvironmentFaultError, match="step 5 of its episode: ValueError: the lever broke"):
        gdi.train(config, tmp_path / "run")
    assert (tmp_path / "run" / "faults.log").read_text().count("Traceback") == 1
    config = replace(config, env=replace(config.env, restart_on_error=20))
    with pytest.raises(UserError, match="restart_on_error was 5"):
        gdi.train(config, tmp_path / "run", resume=True)


def test_built_in_environments_are_not_restarted(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", "--env=MinAtar/Breakout-v0", "--env.restart-on-error=2"]
    assert "--env.restart-on-error applies only to Gymnasium environments" in error_line(argv, capsys)


class Counting(gymnasium.Env[Any, int]):
    """Observation: [seed of the episode or 0, step]. The reward is the step. Fails in the steps of ``fails``."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fails: list[int]) -> None:
        self._fails = fails

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._clock = 0
        self._seed = float(seed or 0)
        return np.array([self._seed, 0.0]), {}

    def step(self, action: int) -> Any:
        self._clock += 1
        if self._fails and self._fails[0] == self._clock:
            self._fails.pop(0)
            raise ValueError("broken")
        return np.array([self._seed, self._clock]), float(self._clock), self._clock == 6, False, {}


def guarded_copies(fails: list[list[int]], restarts: int) -> Any:
    """Copies with these faults, as a VectorEnv; each fresh instance continues its copy's list of faults."""
    from gdi.envs.gymnasium import GymnasiumEnv

    config, budget = EnvConfig(id="Counting"), Restarts(restarts)
    env = GymnasiumEnv.__new__(GymnasiumEnv)
    copies = [lambda i=i: CopyGuard(lambda: Counting(fails[i]), i, config, budget) for i in range(len(fails))]
    env._env = gymnasium.vector.SyncVectorEnv(copies)
    env._id, env.num_envs, env.faults = "Counting", len(fails), ()
    env._observations = Observations("Counting", Counting.observation_space)
    env._actions = Actions("Counting", Counting.action_space, 0)
    env._nothing = env.beside = nothing_beside(len(fails))
    env.spec = EnvSpec((2,), np.dtype(np.float32), 2)
    return env


@pytest.mark.parametrize("burn_in", [0, 2])
def test_only_the_episode_of_the_replaced_copy_is_dropped(burn_in: int) -> None:
    """Copy 0 fails in its 4th step, copy 1 never. Windows of 5 steps; t counts the trained ones."""
    env = guarded_copies([[4], []], restarts=1)
    actor, _ = make_actor(env, with_lstm(tiny_config(sequence_steps=5, burn_in_steps=burn_in)))
    asked: list[list[int]] = []

    def propose(envs: list[int]) -> list[Any]:
        asked.append(envs)
        return [(float(len(asked)), 1.0, 0.5)] * len(envs)

    (first, taken, ended), (second, _, later) = (actor.collect(propose, 10**9) for _ in range(2))
    new = slice(burn_in, None)
    assert taken == 9  # 2 x 5 steps, of which the failed one is no transition
    assert first.valid[new].T.tolist() == [[True, True, True, False, True], [True] * 5]
    assert first.truncated[new].T.tolist() == [[False, False, True, False, False], [False] * 5]
    assert not first.terminated.any()
    assert first.reward[new].T.tolist() == [[1, 2, 3, 0, 1], [1, 2, 3, 4, 5]]
    assert first.episode_start[new].T.tolist() == [[True, False, False, False, True, False], [True] + [False] * 5]
    assert first.obs[new, :, 1].T.tolist() == [[0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 4, 5]]
    assert first.obs[burn_in, 0, 0] != first.obs[burn_in + 4, 0, 0]  # a seed that was not used before
    # λ is drawn for both copies, then for the fresh one, before its first step.
    assert asked[:2] == [[0, 1], [0]]
    assert first.index[new, 0, 0].tolist() == [1, 1, 1, 1, 2, 2]
    assert ended == []
    (fault,) = actor.take_faults()
    assert (fault.copy, fault.step, fault.what) == (0, 4, "ValueError: broken")
    # Copy 1 ends in its 6th step with return 1 + ... + 6, copy 0 in the 6th step of its new episode.
    assert [(e.env, e.episode_return, e.length_steps, e.index[0]) for e in later] == [(1, 21.0, 6, 1), (0, 21.0, 6, 2)]
    assert second.valid[new].T.tolist() == [[True] * 5, [True, False, True, True, True]]


def test_a_fault_in_a_windows_first_step_truncates_the_stored_step_before() -> None:
    """Copy 0 fails in its 6th step, the first of the second window. A slice of stored steps must end there."""
    from gdi.data.sampled import Layout

    env = guarded_copies([[3], []], restarts=1)
    actor, _ = make_actor(env, tiny_config(sequence_steps=2))
    windows = [actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), 10**9)[0] for _ in range(2)]
    assert windows[1].valid[0].tolist() == [False, True]
    store = SlotStore(Layout(num_envs=2, window_steps=2, slot_windows=4, num_slots=1), 1)
    for key, window in enumerate(windows):
        store.put(key, window)
    assert store._arrays["truncated"][0, :4].T.tolist() == [[False, True, False, False], [False] * 4]
    assert store._arrays["valid"][0, :4].T.tolist() == [[True, True, False, True], [True] * 4]


def test_an_evaluation_plays_the_dropped_episode_again() -> None:
    config = tiny_config("Toy/Chain-v0")
    env = guarded_copies([[4], [6, 2]], restarts=3)
    actor, network = make_actor(make_toy("Toy/Chain-v0", 2), config)
    del actor
    from gdi.acting.player import Player
    from gdi.algorithms import make_algorithm
    from helpers import make_network

    network = make_network(config, (2,), 2, 0)
    player = Player(make_algorithm(config), network, 2, env.spec)
    evaluation = Evaluator(replace(config.env, id="Counting"), env, player).evaluate(
        dict(network.state_dict()), lambda env, rng: (1.0, 1.0, 0.5), 4, 0
    )
    assert evaluation is not None
    assert evaluation.returns == (21.0,) * 4  # whole episodes only: 1 + 2 + ... + 6
    assert (evaluation.restarts, evaluation.length_mean_steps) == (3, 6.0)


# Processes of --env.processes.


def in_processes(kind: str, **settings: Any) -> Config:
    config = faulty(kind, **settings)
    return replace(config, env=replace(config.env, processes=2))


@pytest.mark.usefixtures("_fresh_flag")
@pytest.mark.parametrize("kind", ["Raises", "HangsOnce"])
def test_a_fault_in_a_process_is_the_same(kind: str, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFaultError) as caught:
        gdi.train(in_processes(kind), tmp_path / "run")
    assert str(caught.value).partition("copy ")[2][1:] == TOLD[kind].partition("copy 0")[2]
    assert TRACES[kind] in (tmp_path / "run" / "faults.log").read_text()
    assert gdi.train(in_processes(kind), tmp_path / "run", resume=True).steps == 400


@pytest.mark.usefixtures("_fresh_flag")
def test_a_fresh_copy_in_a_process_is_counted(tmp_path: Path) -> None:
    console = RecordingConsole()
    result = gdi.train(in_processes("Raises", restarts=1), tmp_path / "run", console=console)
    assert (result.steps, len(console.notices)) == (400, 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_stands_still_is_a_fault(number: signal.Signals, tmp_path: Path) -> None:
    config = in_processes("Plain")
    config = replace(config, env=replace(config.env, timeout_seconds=0.1))
    assert multiprocessing.active_children() == []

    def hit() -> None:
        first = min(child.pid or 0 for child in multiprocessing.active_children())  # of the actor
        os.kill(first, number)

    with pytest.raises(EnvironmentFaultError) as caught:
        gdi.train(config, tmp_path / "run", console=AtSteps(100, hit))
    # Each of the two processes has four copies, and may take as long as five of them.
    told = {signal.SIGKILL: "died, with exit code -9", signal.SIGSTOP: "a process gave no answer for 0.5 s"}
    assert told[number] in str(caught.value)
    assert newest(tmp_path / "run")["system"]["steps"] >= 100
    assert multiprocessing.active_children() == []
    assert gdi.train(config, tmp_path / "run", resume=True).steps == 400


# The parts.


def test_a_call_that_hangs_is_left_alone_and_the_next_one_works() -> None:
    watchdog = Watchdog(0.05)
    assert watchdog.call(lambda x: x + 1, 2) == 3
    with pytest.raises(KeyError, match="lever"):
        watchdog.call({}.__getitem__, "lever")
    with pytest.raises(HangError, match=r"no answer for 0\.05 s") as caught:
        watchdog.call(time.sleep, 0.5)
    assert "watchdog.py" in caught.value.stack
    assert watchdog.call(lambda: "again") == "again"
    watchdog.close()


def test_a_hung_vector_environment_is_not_closed() -> None:
    toy = make_toy("Toy/Chain-v0", 2)
    closed: list[bool] = []
    toy.close = lambda: closed.append(True)  # type: ignore[method-assign]
    guard = Guard(toy, EnvConfig(id="Toy/Chain-v0", timeout_seconds=0.05))
    guard.reset(0)
    toy.step = lambda action: time.sleep(1)  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(EnvironmentFaultError, match=r"environment 'Toy/Chain-v0': no answer for 0\.05 s"):
        guard.step(np.zeros(2, np.int64))
    guard.close()
    assert closed == []
    other = Guard(make_toy("Toy/Chain-v0", 2), EnvConfig(id="Toy/Chain-v0"))
    other.inner.close = lambda: closed.append(True)  # type: ignore[method-assign]
    other.close()
    assert closed == [True]


BOX, DISCRETE = gymnasium.spaces.Box(0, 1, (2,)), gymnasium.spaces.Discrete(3)
NESTED = gymnasium.spaces.Dict({"a": BOX, "b": gymnasium.spaces.Tuple((BOX, DISCRETE))})
TWO = np.zeros(2)


@pytest.mark.parametrize(
    ("space", "observation", "problem"),
    [
        (BOX, TWO, None),
        (BOX, [0, 0], None),
        (BOX, np.zeros((1, 2)), "shape (1, 2) and must have (2,)"),
        (BOX, 0.0, "shape () and must have (2,)"),
        (DISCRETE, 2, None),
        (DISCRETE, TWO, "shape (2,) and must have ()"),
        (NESTED, {"a": TWO, "b": (TWO, 1)}, None),
        (NESTED, {"a": TWO}, "dict and must have the keys a, b"),
        (NESTED, {"a": TWO, "b": (TWO,)}, "tuple of 1 and must be a tuple of 2"),
        (NESTED, {"a": TWO, "b": (np.zeros(3), 1)}, "shape (3,)"),
    ],
)
def test_shapes_are_those_of_the_space(space: Any, observation: Any, problem: str | None) -> None:
    found = shape_problem(space, observation)
    assert (found is None) == (problem is None)
    assert problem is None or problem in str(found)


def test_a_journal_takes_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdi.envs.journal.MAX_STEPS", 7)  # so that it begins anew on the way
    journal, plain = Journal(make_env(EnvConfig("MinAtar/Breakout-v0", 3))), MinAtarEnv("MinAtar/Breakout-v0", 3)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(journal.reset(4), expected := plain.reset(4))
    for _ in range(12):
        mark = journal.mark()
        assert mark is not None
        for _ in range(int(rng.integers(4))):
            journal.step(rng.integers(6, size=3))
        np.testing.assert_array_equal(journal.rewind(mark), expected)
        action = rng.integers(6, size=3)
        expected = plain.step(action).obs
        np.testing.assert_array_equal(journal.step(action).obs, expected)
    assert Journal(make_env(EnvConfig("CartPole-v1", 2))).mark() is None


def test_a_fault_crosses_processes() -> None:
    import pickle

    error = EnvironmentFaultError(Fault("X-v0", "it broke", "Traceback", 3, 0))
    again = pickle.loads(pickle.dumps(error))
    assert again.fault == error.fault
    assert str(again) == "environment 'X-v0', copy 3, at a reset: it broke"
