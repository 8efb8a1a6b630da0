"""The MinAtar benchmark: nothing is lost, doubled or mixed, runs resume, and the statistics have known answers."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.minatar_sweep import __main__ as command
from benchmarks.minatar_sweep import (
    ablation,
    agents,
    analysis,
    figures,
    gdi_run,
    peer_settings,
    stats,
    sweep,
    tables,
    worker,
)
from benchmarks.minatar_sweep.agents import AGENTS, GAMES
from benchmarks.minatar_sweep.display import Pace, duration
from benchmarks.minatar_sweep.jobs import EVALUATIONS, Job, all_jobs, first_difference, shared_settings
from benchmarks.minatar_sweep.records import (
    EVALUATION_COLUMNS,
    LAMBDA_COLUMNS,
    Row,
    check,
    evaluation_row,
    finished_runs,
    merge,
    publish,
    read_rows,
    read_settings,
    write_rows,
    write_settings,
)

from gdi.config import differences
from gdi.errors import UserError
from gdi.networks.torsos import make_torso
from gdi.scores import metrics
from gdi.scores import runs as scored
from gdi.scores.runs import Run
from gdi.seeds import child_seed

COMMITTED = Path(__file__).parents[1] / "docs" / "results" / "minatar"


def job(agent: str = "gdi-i3", game: str = "Breakout", seed: int = 1, steps: int = 3000) -> Job:
    return Job(AGENTS[agent], game, seed, steps)


def rows_of(one: Job, means: tuple[float, ...] = (1.0, 2.0)) -> list[Row]:
    """As many evaluations as means, evenly spaced, the last at the end."""
    return [
        evaluation_row(one, one.steps * (i + 1) // len(means), 10.0 * (i + 1), {"mean": m, "min": 0, "max": 9}, 32)
        for i, m in enumerate(means)
    ]


def finish(one: Job, runs: Path, means: tuple[float, ...] = (1.0, 2.0)) -> None:
    """Leave the files of a finished run, without running it."""
    write_settings(one.folder(runs) / "config.json", one.settings())
    write_rows(one.folder(runs) / EVALUATIONS, EVALUATION_COLUMNS, rows_of(one, means))


def without_clock(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


# ------------------------------------------------------------------------------------------------- jobs and settings


def test_a_full_sweep_is_what_was_promised() -> None:
    jobs = all_jobs(AGENTS, GAMES, None, agents.STEPS)
    seeds = {name: {one.seed for one in jobs if one.agent.name == name} for name in AGENTS}
    assert {name for name, found in seeds.items() if found == {0, 1, 2, 3, 4}} == {"gdi-i3", "gdi-h3", "ppo"}
    assert all(found >= {0, 1, 2} for found in seeds.values())
    assert len(jobs) == len(set(jobs)) == 5 * sum(map(len, seeds.values()))
    # Seed by seed: cut short anywhere, it has compared everybody on as much as possible.
    assert [one.seed for one in jobs] == sorted(one.seed for one in jobs)


def test_gdi_runs_with_its_presets_and_one_thread() -> None:
    for agent in AGENTS.values():
        if agent.is_peer:
            continue
        plain = agents.make_config(agent.preset, "MinAtar/Asterix-v0", scale="minatar", steps=10**6, seed=3)
        config = agents.gdi_config(agent, "Asterix", 3, 10**6)
        changed = {name for name, _, _ in differences(plain, config)}
        allowed = {"run.threads", "run.device", "run.keep_checkpoints", "run.states_per_stage"}
        assert changed == allowed | ({"learner.reward_scales"} if agent.reward_scale else set())
        assert config.run.threads == 1
    assert agents.gdi_config(AGENTS["fixed-unscaled"], "Asterix", 1, 10).learner.reward_scales == (1.0,)


def test_evaluations_are_every_100k_steps_and_at_least_four() -> None:
    assert agents.evaluate_every_steps(1_000_000) == 100_000
    assert agents.evaluate_every_steps(200_000) == 50_000
    assert agents.evaluate_every_steps(1) == 1


def test_shared_settings_leave_out_game_and_seed_alone() -> None:
    for name in ("gdi-i3", "ppo", "dqn"):
        one, other = job(name), job(name, "Asterix", 2)
        assert shared_settings(one.settings()) == shared_settings(other.settings())
        assert first_difference(one.settings(), other.settings()) is not None
        assert first_difference(shared_settings(one.settings()), shared_settings(job(name, steps=9).settings()))


def test_a_setting_that_only_one_side_knows_is_no_difference() -> None:
    assert first_difference({"a": 1, "gone": 2}, {"a": 1, "new": 3}) is None
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 2}}) == ("a.b", 1, 2)


@pytest.mark.parametrize("name", [agent.name for agent in AGENTS.values() if not agent.is_peer])
def test_settings_of_format_1_are_those_of_today(name: str, tmp_path: Path) -> None:
    """The committed results go on: no setting differs, and none escapes the comparison by its new place."""
    path = COMMITTED / f"{name}.json"
    assert "format" not in json.loads(path.read_text())
    today = shared_settings(job(name, steps=1_000_000).settings())
    assert read_settings(path) == today
    stored = json.loads(path.read_text())
    stored["learner"]["replay"] = 3
    (tmp_path / "changed.json").write_text(json.dumps(stored))
    changed = read_settings(tmp_path / "changed.json")
    assert changed is not None
    assert first_difference(changed, today) == ("data.replay", 3, 8)


def test_the_kind_of_controller_is_a_setting() -> None:
    fixed, random = (shared_settings(job(name).settings())["controller"] for name in ("fixed", "random"))
    assert first_difference(fixed, random) == ("kind", "fixed", "uniform")


# ------------------------------------------------------------------------------------------------- files of results


def test_merge_loses_and_doubles_no_row() -> None:
    one, two, three = job(seed=1), job(seed=2), job(game="Asterix", seed=1)
    old = [*rows_of(one), *rows_of(two)]
    again = rows_of(two, (5.0, 6.0, 7.0))
    merged = merge(old, [*again, *rows_of(three)])
    assert merged == [*rows_of(three), *rows_of(one), *again]
    assert merge(merged, merged) == merged


def test_publishing_keeps_rows_whose_runs_are_gone(tmp_path: Path) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results"
    first, second, unfinished = job(seed=1), job(seed=2), job(seed=3)
    finish(first, runs)
    publish([first, second, unfinished], runs, results)
    shutil.rmtree(first.folder(runs))
    finish(second, runs)
    publish([second, unfinished], runs, results)
    assert read_rows(results / "gdi-i3.csv", EVALUATION_COLUMNS) == [*rows_of(first), *rows_of(second)]
    assert finished_runs(results, "gdi-i3") == {("Breakout", 1), ("Breakout", 2)}
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    publish([first, second, unfinished], runs, results)
    assert {path.name: path.read_bytes() for path in results.iterdir()} == before
    assert set(before) == {"gdi-i3.csv", "gdi-i3.json"}  # no half-written file is left


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "gdi-i3.csv"
    write_rows(path, EVALUATION_COLUMNS, rows_of(job()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="surprise"):
        write_rows(path, EVALUATION_COLUMNS, [*rows_of(job(seed=2)), {**rows_of(job())[0], "surprise": "1"}])
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["gdi-i3.csv"]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", ",".join(EVALUATION_COLUMNS) + "\ngdi-i3,Breakout,1,30\n"])
def test_a_foreign_or_cut_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UserError, match=r"x\.csv"):
        read_rows(tmp_path / "x.csv", EVALUATION_COLUMNS)


def test_other_settings_are_never_mixed_in(tmp_path: Path) -> None:
    runs, results = tmp_path / "runs", tmp_path / "results"
    finish(job("ppo"), runs)
    check(job("ppo"), runs, results)
    with pytest.raises(UserError, match="steps was 3000 and is now 4000"):
        check(job("ppo", steps=4000), runs, results)
    publish([job("ppo")], runs, results)
    shutil.rmtree(runs)
    # The CSV file alone says so, too, and for every run of the agent: one file, one configuration.
    check(job("ppo", "Asterix", 9), runs, results)
    with pytest.raises(UserError, match="steps was 3000 and is now 4000"):
        check(job("ppo", "Asterix", 9, 4000), runs, results)
    stored = json.loads((results / "ppo.json").read_text())
    stored["learner"]["clip_range"] = 0.3
    (results / "ppo.json").write_text(json.dumps(stored))
    with pytest.raises(UserError, match=r"learner\.clip_range was 0\.3 and is now 0\.2"):
        check(job("ppo"), runs, results)
    (results / "ppo.json").unlink()
    with pytest.raises(UserError, match=r"ppo\.json"):
        check(job("ppo"), runs, results)


# ------------------------------------------------------------------------------------------------- the sweep


class FakeProcess:
    """A job that finishes after a few looks at it, in place of a process."""

    alive = 0
    most = 0
    failing: tuple[int, ...] = ()
    endless = False

    def __init__(self, one: Job, runs: Path) -> None:
        self.job, self.runs, self.steps, self._looks = one, runs, 0, 0
        self.stopped = False
        FakeProcess.alive += 1
        FakeProcess.most = max(FakeProcess.most, FakeProcess.alive)

    @property
    def running(self) -> bool:
        self._looks += 1
        self.steps = 1000 * self._looks
        if self.stopped or (self._looks > 3 and not FakeProcess.endless):
            FakeProcess.alive -= 1
            return False
        return True

    def stop(self) -> None:
        self.stopped = True

    def kill(self) -> None:
        self.stopped = True

    def outcome(self, *, asked_to_stop: bool) -> str:
        if asked_to_stop:
            return "stopped"
        if self.job.seed in FakeProcess.failing:
            return "failed (exit code 1): bad luck"
        finish(self.job, self.runs)
        return "finished"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeProcess]:
    FakeProcess.alive = FakeProcess.most = 0
    FakeProcess.failing, FakeProcess.endless = (), False
    monkeypatch.setattr(sweep, "Process", FakeProcess)
    monkeypatch.setattr(sweep, "POLL_SECONDS", 0.0)
    return FakeProcess


def run(tmp_path: Path, *options: str) -> int:
    where = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    return command.main([*where, "--games", "breakout", "--steps", "3000", "--jobs", "2", *options])


def test_the_sweep_runs_everything_and_then_nothing_again(
    tmp_path: Path, fake: type[FakeProcess], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.failing = (3,)
    assert run(tmp_path, "--agents", "gdi-i3,ppo", "--seeds", "1,2,3") == 1
    assert "2 of 6 runs are left" in capsys.readouterr().err
    assert fake.most == 2
    assert finished_runs(tmp_path / "results", "ppo") == {("Breakout", 1), ("Breakout", 2)}
    fake.failing, fake.most = (), 0
    assert run(tmp_path, "--agents", "gdi-i3,ppo", "--seeds", "1,2,3") == 0
    assert finished_runs(tmp_path / "results", "gdi-i3") == {("Breakout", 1), ("Breakout", 2), ("Breakout", 3)}
    # From the CSV files alone, without the run folders.
    shutil.rmtree(tmp_path / "runs")
    monkeypatch.setattr(sweep, "Process", None)
    assert run(tmp_path, "--agents", "gdi-i3,ppo", "--seeds", "1,2,3") == 0
    # From the run folders alone, as after a sweep that was killed: the CSV files come back.
    finish(job("dqn"), tmp_path / "runs")
    assert run(tmp_path, "--agents", "dqn", "--seeds", "1") == 0
    assert finished_runs(tmp_path / "results", "dqn") == {("Breakout", 1)}
    capsys.readouterr()
    assert run(tmp_path, "--agents", "dqn", "--seeds", "1", "--steps", "4000") == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "steps was 3000 and is now 4000" in told


def test_the_sweep_stops_when_the_time_is_used_up(tmp_path: Path, fake: type[FakeProcess]) -> None:
    fake.endless = True
    assert run(tmp_path, "--agents", "gdi-i3", "--seeds", "1,2,3", "--minutes", "0.001") == 0
    assert fake.most == 2
    assert finished_runs(tmp_path / "results", "gdi-i3") == set()


def test_ctrl_c_stops_the_sweep(
    tmp_path: Path, fake: type[FakeProcess], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.endless = True
    asked: list[float] = []

    def interrupt_once(seconds: float) -> None:
        if not asked:
            os.kill(os.getpid(), signal.SIGINT)
        asked.append(seconds)

    monkeypatch.setattr(sweep.time, "sleep", interrupt_once)
    assert run(tmp_path, "--agents", "gdi-i3", "--seeds", "1,2") == 130
    assert "2 of 2 runs are left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--agents", "gdi-i4"], "gdi-i3"),
        (["--games", "Pong"], "Breakout"),
        (["--seeds", "1;2"], "1,2,3"),
        (["--steps", "0"], "--steps"),
        (["--steps", "many"], "--steps"),
        (["--jobs", "-1"], "--jobs"),
        (["--minutes", "0"], "--minutes"),
        (["--minutes", "nan"], "--minutes"),
        (["--minute", "3"], "--minute"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *options) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert words in told
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("")
    assert run(tmp_path, "--agents", "ppo") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_workers_are_processes_of_their_own(tmp_path: Path) -> None:
    """The only real processes of these tests: a DQN too short to learn, and a run that cannot be."""
    good, bad = job("dqn", steps=40), job("gdi-i3", "Pong")
    processes = [sweep.Process(one, tmp_path) for one in (good, bad)]
    while any(process.running for process in processes):
        time.sleep(0.05)
    assert processes[0].outcome(asked_to_stop=False) == "finished"
    assert processes[0].steps > 0
    steps = [int(row["steps"]) for row in read_rows(good.folder(tmp_path) / EVALUATIONS, EVALUATION_COLUMNS)]
    assert steps == [12, 20, 32, 40]  # every 10 steps, in steps of 4 environments
    told = processes[1].outcome(asked_to_stop=False)
    assert told.startswith("failed (exit code 2): error: unknown environment 'MinAtar/Pong-v0'")
    assert processes[1].outcome(asked_to_stop=True) == "stopped"


def test_the_pace_forgets_what_was_done_before() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    resumed, fresh = job(seed=1, steps=1000), job(seed=2, steps=1000)
    assert pace.seconds_left(1000) is None
    pace.at(resumed, 0)
    pace.at(resumed, 600)  # its checkpoint
    pace.at(fresh, 10)
    now[0] = 10.0
    pace.at(resumed, 700)
    pace.at(fresh, 110)
    assert pace.per_second == pytest.approx((100 + 100) / 10)
    assert pace.seconds_left(1000) == pytest.approx(50)
    pace.at(fresh, 1200)
    assert pace.done(fresh) == 1000
    assert [duration(s) for s in (None, 40, 720, 11100)] == ["unknown", "40 s", "12 min", "3 h 05 min"]


# ------------------------------------------------------------------------------------------------- GDI runs


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """GDI runs of a second: the presets with few environments and a small network."""

    def small(agent: Any, game: str, seed: int, steps: int) -> Any:
        config = agents.gdi_config(agent, game, seed, steps)
        return replace(
            config,
            env=replace(config.env, num_envs=8),
            network=replace(config.network, hidden_units=8),
            data=replace(config.data, batch_size_sequences=8, sequence_steps=10, replay=1, replay_span_windows=2),
            evaluation=replace(config.evaluation, episodes=2),
            run=replace(config.run, log_every_steps=100, checkpoint_every_steps=400),
        )

    monkeypatch.setattr(gdi_run, "gdi_config", small)
    monkeypatch.setattr(gdi_run, "LAMBDA_EVERY_STEPS", 200)


def quiet(steps: int) -> None:
    pass


@pytest.mark.usefixtures("tiny")
def test_a_stopped_gdi_run_resumes_as_if_never_stopped(tmp_path: Path) -> None:
    def stop_half_way(steps: int) -> None:
        if steps > 300:
            os.kill(os.getpid(), signal.SIGTERM)

    one = job(steps=800)
    assert worker.run_job(one, tmp_path / "never", quiet)
    assert not worker.run_job(one, tmp_path / "stopped", stop_half_way)
    assert not (one.folder(tmp_path / "stopped") / EVALUATIONS).exists()
    told: list[int] = []
    assert worker.run_job(one, tmp_path / "stopped", told.append)
    assert told[0] > 300  # it went on, and did not begin anew
    for name, columns in ((EVALUATIONS, EVALUATION_COLUMNS), ("lambda.csv", LAMBDA_COLUMNS)):
        rows = [read_rows(one.folder(tmp_path / which) / name, columns) for which in ("never", "stopped")]
        assert without_clock(rows[0]) == without_clock(rows[1])
        assert len(rows[0]) == 4
    assert worker.run_job(one, tmp_path / "stopped", quiet)  # what is finished stays so
    other = job(seed=2, steps=800)
    assert worker.run_job(other, tmp_path / "never", quiet)
    rows = [read_rows(x.folder(tmp_path / "never") / "lambda.csv", LAMBDA_COLUMNS) for x in (one, other)]
    assert [row["mean_epsilon"] for row in rows[0]] != [row["mean_epsilon"] for row in rows[1]]


def controller_event(**best: int) -> dict[str, Any]:
    event: dict[str, Any] = {"steps": 100, "learner/skipped_total": 2}
    blocks = {"inverse_tau_1": 50, "inverse_tau_2": 50, "epsilon": 10}
    for axis, block in best.items():
        chances = [0.0] * blocks[axis]
        chances[block], chances[0] = 0.75, 0.25
        event |= {f"controller/{axis}/block_probability": chances, f"controller/{axis}/best_block": float(block)}
        event[f"controller/{axis}/top_block_probability"] = 0.75
    return event


def middle(block: int) -> float:
    """Of one of 50 blocks of 1/τ, equal in log(1 + 1/τ) from 0 to log 301."""
    return float(301 ** ((block + 0.5) / 50)) - 1


def test_lambda_is_taken_from_the_log() -> None:
    found = gdi_run.controller_columns(
        controller_event(inverse_tau_1=30, inverse_tau_2=4, epsilon=9),
        agents.gdi_config(AGENTS["gdi-i3"], "Asterix", 1, 9),
    )
    assert found["best_inverse_tau_1"] == pytest.approx(middle(30))
    assert found["best_epsilon"] == pytest.approx(0.95)
    assert found["mean_inverse_tau_1"] == pytest.approx(0.75 * middle(30) + 0.25 * middle(0))
    assert found["top_probability_epsilon"] == 0.75
    held = gdi_run.controller_columns(
        controller_event(inverse_tau_1=30), agents.gdi_config(AGENTS["boltzmann"], "Asterix", 1, 9)
    )
    assert held["best_inverse_tau_1"] == pytest.approx(middle(30))
    assert (held["best_inverse_tau_2"], held["best_epsilon"]) == (0.0, 1.0)
    assert "top_probability_epsilon" not in held
    fixed = gdi_run.controller_columns({}, agents.gdi_config(AGENTS["fixed"], "Asterix", 1, 9))
    assert [fixed[f"best_{axis}"] for axis in ("inverse_tau_1", "inverse_tau_2", "epsilon")] == [1.0, 0.0, 1.0]
    assert gdi_run.controller_columns({}, agents.gdi_config(AGENTS["random"], "Asterix", 1, 9)) == {}


def test_the_log_is_thinned_but_keeps_its_end() -> None:
    lines = [{"steps": steps} for steps in (10, 21, 30, 39, 44, 50)]
    assert [line["steps"] for line in gdi_run.subsample(lines, 20)] == [21, 44, 50]


# ------------------------------------------------------------------------------------------------- the peers


def peer(name: str, seed: int, steps: int = 2048) -> Any:
    from benchmarks.minatar_sweep.peers import train_peer

    return train_peer(name, "MinAtar/Breakout-v0", seed, steps, quiet)


def flat(found: Any) -> list[tuple[int, list[float]]]:
    return [(evaluation.steps, evaluation.returns.tolist()) for evaluation in found]


@pytest.fixture
def small_ppo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peer_settings.ENVS, "ppo", 8)
    monkeypatch.setitem(peer_settings.PPO, "batch_size", 64)


@pytest.mark.usefixtures("small_ppo")
def test_a_peer_honours_its_seed_and_is_not_changed_by_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.minatar_sweep import peers

    found = flat(peer("ppo", 1, 400))
    assert [steps for steps, _ in found] == [104, 200, 304, 512]
    assert all(len(returns) == 32 for _, returns in found)
    assert flat(peer("ppo", 1, 400)) == found
    assert flat(peer("ppo", 2, 400)) != found
    with monkeypatch.context() as patch:
        patch.setattr(peers, "evaluate_every_steps", lambda steps: steps)
        assert flat(peer("ppo", 1, 400)) == found[-1:]
    # Training, not only evaluation, depends on the seed.
    monkeypatch.setattr(peers, "child_seed", lambda seed, *name: child_seed(7 if "evaluation" in name else seed, *name))
    assert flat(peer("ppo", 1, 400))[-1] != flat(peer("ppo", 2, 400))[-1]


@pytest.mark.usefixtures("small_ppo")
def test_a_peer_leaves_nothing_in_the_temporary_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    peer("ppo", 1, 400)
    assert not list(tmp_path.iterdir())


def test_an_evaluation_plays_one_episode_in_each_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.minatar_sweep import peers

    class Rewarding:
        """Environment i ends with its step i + 2, begins again, and gives a reward of 1 at every step."""

        clock = 0

        def reset(self, seed: int) -> Any:
            return np.zeros((3, 10, 10, 4), bool)

        def step(self, action: Any) -> Any:
            self.clock += 1
            ends = np.array([self.clock == i + 2 for i in range(3)])
            return np.zeros((3, 10, 10, 4), bool), np.ones(3, np.float32), ends & [True, False, True], ends

        def close(self) -> None:
            pass

    monkeypatch.setattr(peers, "make_env", lambda config: Rewarding())
    found = peers.play("MinAtar/Breakout-v0", lambda obs, generator: obs[:, 0, 0, 0].long(), 3, 1)
    assert found.tolist() == [2, 3, 4]


def test_dqn_learns_from_transitions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peer_settings.DQN, "learning_starts", 100)
    found = flat(peer("dqn", 1, 400))
    assert [steps for steps, _ in found] == [100, 200, 300, 400]


def test_a_game_for_the_peers_counts_no_reset_as_a_step() -> None:
    from benchmarks.minatar_sweep.peers import SingleGameEnv

    from gdi.config import EnvConfig
    from gdi.envs import make_env

    ours, theirs = make_env(EnvConfig("MinAtar/Breakout-v0", num_envs=1)), SingleGameEnv("MinAtar/Breakout-v0")
    obs, (seen, _) = ours.reset(5), theirs.reset(seed=5)
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(300):
        action = rng.integers(6)
        step = ours.step(np.array([action]))
        seen, reward, terminated, truncated, _ = theirs.step(action)
        assert (reward, terminated, truncated) == (step.reward[0], step.terminated[0], step.truncated[0])
        if terminated or truncated:
            ends += 1
            step = ours.step(np.array([0]))  # the reset, which is a step for us
            seen, _ = theirs.reset()
        obs = step.obs
        assert (seen == obs[0].transpose(2, 0, 1)).all()
        assert theirs.observation_space.contains(seen)
    assert ends > 3


def test_peers_have_gdis_torso() -> None:
    from benchmarks.minatar_sweep.peers import SingleGameEnv, Torso

    game = SingleGameEnv("MinAtar/Seaquest-v0")
    channels, height, width = game.observation_space.shape
    ours = make_torso("minatar", (height, width, channels), peer_settings.HIDDEN_UNITS)
    theirs = Torso(game.observation_space)
    assert sorted(p.shape for p in ours.parameters()) == sorted(p.shape for p in theirs.parameters())
    assert agents.gdi_config(AGENTS["gdi-i3"], "Seaquest", 1, 1).network.hidden_units == peer_settings.HIDDEN_UNITS


# ------------------------------------------------------------------------------------------------- the statistics


def synthetic(
    score: Callable[[str, str, int], tuple[float, ...]], seeds: int = 3, games: tuple[str, ...] = GAMES
) -> list[Run]:
    """Runs of all agents whose evaluations are ``score(agent, game, seed)``."""
    rows = [
        row
        for agent in AGENTS
        for game in games
        for seed in range(1, seeds + 1)
        for row in rows_of(job(agent, game, seed, 1000), score(agent, game, seed))
    ]
    return stats.make_runs(rows)


SIZE = dict(zip(GAMES, (1.0, 20.0, 50.0, 3.0, 80.0), strict=True))
FACTOR = {"gdi-h3": 3.0, "gdi-i3": 2.0, "dqn": 1.0, "fixed": 0.0}


def exact(agent: str, game: str, seed: int) -> tuple[float, ...]:
    """Twice DQN in every game and seed, three times, ...; the end counts, not the best."""
    final = SIZE[game] * FACTOR.get(agent, 0.5) * (1 + 0.1 * (seed - 2))
    return (final / 2, 10 * final + 1, final)


def test_twice_dqn_is_two() -> None:
    runs = synthetic(exact)
    divisor = stats.normalizer(runs, GAMES)
    assert divisor == pytest.approx([SIZE[game] for game in GAMES])
    for agent, factor in (("gdi-i3", 2.0), ("gdi-h3", 3.0), ("dqn", 1.0), ("fixed", 0.0)):
        found = scored.estimate(metrics.iqm, scored.score_matrix(runs, agent, GAMES) / divisor)
        assert found.value == pytest.approx(factor)
        assert 0.9 * factor <= found.low <= found.value <= found.high <= 1.1 * factor


def test_the_normalizer_needs_a_score_to_divide_by() -> None:
    runs = synthetic(lambda agent, game, seed: (0.0 if game == "Freeway" else 4.0,))
    divisor = dict(zip(GAMES, stats.normalizer(runs, GAMES), strict=True))
    assert divisor.pop("Freeway") != divisor["Asterix"]
    assert set(divisor.values()) == {4.0}
    assert "Freeway" in tables.aggregates(runs).splitlines()[-1]


def test_missing_runs_are_not_zeros() -> None:
    runs = [run for run in synthetic(exact) if (run.agent, run.game) != ("gdi-i3", "Asterix") or run.seed == 3]
    matrix = scored.score_matrix(runs, "gdi-i3", GAMES)
    assert np.isfinite(matrix).sum(axis=0).tolist() == [1, 3, 3, 3, 3]
    assert scored.score_matrix([], "gdi-i3", GAMES).shape == (1, 5)
    assert math.isnan(scored.estimate(metrics.iqm, scored.score_matrix([], "gdi-i3", GAMES)).value)


def test_probability_of_improvement_decides() -> None:
    runs = synthetic(exact)
    clear = scored.compare(runs, "gdi-i3", "dqn", GAMES)
    assert (clear.probability.value, clear.verdict, clear.games, clear.ahead) == (1.0, "held", 5, 5)
    reverse = scored.compare(runs, "dqn", "gdi-i3", GAMES)
    assert (reverse.probability.value, reverse.verdict, reverse.ahead) == (0.0, "not held", 0)
    even = scored.compare(runs, "random", "boltzmann", GAMES)
    assert (even.probability.value, even.verdict) == (0.5, "undecided")
    alone = scored.compare([run for run in runs if run.seed == 1], "gdi-i3", "dqn", GAMES)
    assert (alone.probability.value, alone.verdict) == (1.0, "undecided")
    lopsided = [run for run in runs if run.agent != "dqn" or run.seed == 1]
    assert scored.compare(lopsided, "gdi-i3", "dqn", GAMES).verdict == "undecided"
    nearly = synthetic(lambda agent, game, seed: (seed + 0.5 * (agent == "gdi-i3"),))
    close = scored.compare(nearly, "gdi-i3", "dqn", GAMES)
    assert close.probability.value == pytest.approx(6 / 9)
    assert close.probability.low < 0.5 < close.probability.high
    assert (close.verdict, close.ahead) == ("undecided", 5)
    nobody = scored.compare([], "gdi-i3", "dqn", GAMES)
    assert nobody.verdict == "not measured"
    # Only the games that both played are compared.
    part = [run for run in runs if run.agent != "dqn" or run.game in ("Asterix", "Breakout")]
    assert scored.compare(part, "gdi-i3", "dqn", GAMES).games == 2


def test_standing_game_by_game() -> None:
    finals = {"gdi-i3": (4.0, 5.0, 6.0), "ppo": (1.0, 2.0, 3.0), "dqn": (4.5, 5.0, 6.5)}
    runs = synthetic(lambda agent, game, seed: (finals.get(agent, (0.0,) * 3)[seed - 1],))
    ahead = scored.head_to_head(runs, "gdi-i3", "ppo", "Breakout")
    assert (ahead.verdict, ahead.difference.value) == ("ahead", 5.0 - 2.0)
    # Seeds are drawn anew on both sides: at most 6 - 1 apart, at least 4 - 3.
    assert 1.0 <= ahead.difference.low < 3.0 < ahead.difference.high <= 5.0
    behind = scored.head_to_head(runs, "ppo", "gdi-i3", "Breakout")
    assert (behind.verdict, behind.difference.value) == ("behind", 2.0 - 5.0)
    tied = scored.head_to_head(runs, "gdi-i3", "dqn", "Breakout")
    assert (tied.verdict, tied.difference.value) == ("tied", pytest.approx(5.0 - 16.0 / 3))
    single = [run for run in runs if run.agent != "ppo" or run.seed == 1]
    assert scored.head_to_head(single, "gdi-i3", "ppo", "Breakout").verdict == "undecided"
    assert scored.head_to_head([], "gdi-i3", "ppo", "Breakout").verdict == "not measured"
    lines = {line.split(" | ")[0]: line for line in tables.against_peers(runs).splitlines()}
    assert lines["| GDI-I3 against PPO (SB3)"].endswith("| 5 of 5 |")
    assert lines["| GDI-I3 against DQN (SB3)"].endswith("| 5 of 5 |")  # all tied
    assert lines["| GDI-H3 against DQN (SB3)"].endswith("| 0 of 5 |")
    told = tables.against_peers(single)
    assert "undecided: 4.0" in told
    assert "| 0 of 5 |" in next(line for line in told.splitlines() if line.startswith("| GDI-I3 against PPO"))


def test_steps_to_a_score() -> None:
    scores = {1: (1.0, 5.0, 4.0, 8.0), 2: (1.0,) * 4, 3: (6.0,) * 4}
    rows = [row for seed, means in scores.items() for row in rows_of(job(seed=seed, steps=10**6), means)]
    runs = stats.make_runs(rows)
    assert scored.first_reach(runs[0], 5.0) == (500_000, 20.0)
    assert scored.first_reach(runs[0], 5.5) == (1_000_000, 40.0)
    assert scored.first_reach(runs[0], 9.0) == (math.inf, math.inf)
    found = scored.time_to_target(runs, "gdi-i3", "Breakout", 5.0)
    assert found == scored.TimeToTarget(steps=500_000, seconds=20.0, reached=2, runs=3)
    assert tables.format_time_to_target(found, seconds=False) == "500k (2 of 3)"
    assert tables.format_time_to_target(found, seconds=True) == "20 s (2 of 3)"
    half = scored.time_to_target(runs[:2], "gdi-i3", "Breakout", 5.0)
    assert tables.format_time_to_target(half, seconds=True) == "not reached (1 of 2)"
    assert scored.time_to_target(runs, "ppo", "Breakout", 5.0) is None


def test_a_curve_is_the_mean_over_seeds() -> None:
    runs = synthetic(exact)
    found = scored.curve(runs, "gdi-i3", "Breakout")
    assert found is not None
    assert found.steps.tolist() == [333, 666, 1000]
    assert found.mean == pytest.approx([20, 401, 40])
    low, high = found.band
    assert (low <= found.mean).all()
    assert (found.mean <= high).all()
    assert low[-1] >= 36
    assert high[-1] <= 44
    assert scored.curve(runs[:0], "gdi-i3", "Breakout") is None
    single = scored.curve([run for run in runs if run.seed == 1], "gdi-i3", "Breakout")
    assert single is not None
    assert single.band is None


# ------------------------------------------------------------------------------------------------- tables and figures


def lambda_row(agent: str, seed: int, steps: int, **known: str) -> Row:
    row = {"agent": agent, "game": "Breakout", "seed": str(seed), "steps": str(steps)}
    return {**dict.fromkeys(LAMBDA_COLUMNS, ""), **row, "skipped_updates": "0", **known}


def test_the_ablation_is_in_the_papers_form() -> None:
    runs = synthetic(exact)
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in ablation.settings(runs).splitlines() if "|" in line
    ]
    by_name = {line[0]: line[1:5] for line in lines}
    three = "λ = (τ1, τ2, ε)"
    assert by_name["GDI-I3"] == ["GDI-I^3", three, "Uniform", "MAB"]
    assert by_name["GDI-H3"] == ["GDI-H^3", three, "Uniform", "MAB"]
    assert by_name["Fix Selection"] == ["GDI-I^0 w/o E", three, "Delta", "Identical Mapping"]
    assert by_name["Random Selection"] == ["GDI-I^3 w/o E", three, "Uniform", "Identical Mapping"]
    assert by_name["Boltzmann Selection"] == ["GDI-I^1", "λ = (τ)", "Uniform", "MAB"]
    assert by_name["ε-greedy Selection"] == ["GDI-I^1", "λ = (ε)", "Uniform", "MAB"]
    score = [line for line in ablation.score_table(runs).splitlines() if line.startswith("| Breakout")]
    assert score[0].startswith("| Breakout | 40.0 | 200.0 | **60.0** | **300.0** | 0.0 | 0.0 |")


def test_every_pair_gets_a_sentence_that_says_what_was_measured() -> None:
    told = ablation.claims(synthetic(exact))
    sentences = [line for line in told.splitlines() if line.startswith("- ")]
    assert len(sentences) == 1 + 2 * 5 + 2 * 2
    assert all(": held; " in line for line in sentences)
    told = ablation.claims([run for run in synthetic(exact) if run.agent != "random"])
    assert "GDI-I3 over Random Selection (the operator E matters): not measured" in told
    upside_down = synthetic(lambda agent, game, seed: (float(agent == "random") + 0.01 * seed,))
    assert "GDI-I3 over Random Selection (the operator E matters): not held; " in ablation.claims(upside_down)


def test_coverage_says_what_is_missing() -> None:
    told = tables.coverage([run for run in synthetic(exact) if run.game != "Freeway"])
    assert "| GDI-I3 | 3 of 5 | 3 of 5 | 0 of 5 |" in told
    assert "| DQN (SB3) | 3 | 3 | 0 of 3 |" in told
    # 3 agents lack 2 seeds in each of 4 games; in the fifth game all 3 * 5 + 6 * 3 runs are missing.
    assert f"{3 * 2 * 4 + 33} runs of a full sweep are missing." in told


def test_health_is_that_of_the_last_line() -> None:
    rows = [
        lambda_row("gdi-i3", 1, 10, entropy="9"),
        lambda_row("gdi-i3", 1, 20, entropy="1", value_mean="2", value_target_mean="2.5", skipped_updates="3"),
        lambda_row("gdi-i3", 2, 20, entropy="2"),
    ]
    line = tables.health(rows).splitlines()[-1]
    assert line == "| GDI-I3 | 1.5 (1 to 2) | – | – | – | 0.5 (0.5 to 0.5) | – | 3 | 2 |"


def test_analysis_writes_tables_and_figures_from_csv_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    where = ["--results", str(results), "--out", str(out)]
    assert analysis.main(where) == 2
    assert capsys.readouterr().err.count("\n") == 1
    games = ("Breakout", "Freeway")
    for agent in ("gdi-i3", "boltzmann", "ppo"):  # no DQN: nothing to normalize by, and that is told
        rows = [
            row
            for game in games
            for seed in (1, 2)
            for row in rows_of(job(agent, game, seed), exact(agent, game, seed))
        ]
        write_rows(results / f"{agent}.csv", EVALUATION_COLUMNS, rows)
    known = {
        "mean_inverse_tau_1": "3",
        "best_inverse_tau_1": "4",
        "top_probability_inverse_tau_1": "0.5",
        "entropy": "1",
    }
    rows = [lambda_row("boltzmann", seed, steps, **known) for seed in (1, 2) for steps in (10, 20)]
    write_rows(results / "boltzmann-lambda.csv", LAMBDA_COLUMNS, rows)
    assert analysis.main(where) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    names = ["tables.md", "minatar-curves.png", "minatar-lambda.png", "minatar-health.png"]
    assert [path.name for path in written] == names
    assert all(path.read_bytes()[1:4] == b"PNG" for path in written[1:])
    page = written[0].read_text()
    assert "Not computed: scores are normalized by DQN (SB3)" in page
    runs, lambdas = analysis.read_results(results)
    assert analysis.page(runs, lambdas) == page  # the bootstrap, too, is the same each time
    assert figures.iqm_figure(runs) is None
    assert figures.iqm_figure(synthetic(exact)) is not None


def test_the_committed_tables_come_from_the_committed_rows() -> None:
    """Its numbers are bootstrapped with fixed seeds, and its categories are measured on the live presets."""
    assert analysis.page(*analysis.read_results(COMMITTED)) == (COMMITTED / "tables.md").read_text(encoding="utf-8")
