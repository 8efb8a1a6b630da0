"""The plan of a sweep, its jobs, what is refused before the first write, its CSV files, and what it will need."""

from __future__ import annotations

import csv
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdi
from gdi.cli import sweep as command
from gdi.cli.main import main
from gdi.cli.train import parse
from gdi.config import config_to_json
from gdi.errors import UserError
from gdi.scores.readers import load_agents
from gdi.sweep import driver, estimate, probe
from gdi.sweep import plan as plans
from gdi.sweep.display import Display, Pace
from gdi.sweep.driver import Driver, Options
from gdi.sweep.estimate import kind_of
from gdi.sweep.files import write_whole
from gdi.sweep.holder import Holder
from gdi.sweep.jobs import Job, all_jobs, check_plan, config_of, difference, slug
from gdi.sweep.plan import Change, Plan, parse_seeds, plan_of, read_plan
from gdi.sweep.plan_text import plan_to_toml, seeds_text
from gdi.sweep.probe import Trial
from gdi.sweep.record import check_growth, first_difference, store_plan, stored_plan
from gdi.sweep.results import EVALUATION_COLUMNS, Failure, SweepFolder
from gdi.sweep.status import StatusReader, reached_steps
from helpers import error_line, read_metric_lines
from sweep_runs import TINY, rows, write_plan

PLAN = """\
envs = ["MinAtar/Breakout-v0", "pong"]
presets = ["gdi-i3", "dqn", "sb3-dqn"]
seeds = "0-2,7"
steps = 1e5

[settings]
lr = 1e-3
evaluation.episodes = 4
run.overlap = true
sb3.batch_size = 16

[preset.dqn]
seeds = [0]
envs = "pong"
"data.batch_size_sequences" = 16

[variants.slow]
presets = ["gdi-i3"]
seeds = 7
optimizer.learning_rate = 3e-4
controller = "multiplicative-weights"
learner.reward_scales = [0.5]
"""


def plan(text: str = PLAN) -> Plan:
    return plan_of(plans.tomllib.loads(text))


# ------------------------------------------------------------------------------------------------- the plan and jobs


def test_jobs_are_every_combination_seed_by_seed() -> None:
    jobs = all_jobs(plan())
    assert [str(job) for job in jobs[:5]] == [
        "gdi-i3 MinAtar/Breakout-v0 seed 0",
        "sb3-dqn MinAtar/Breakout-v0 seed 0",
        "gdi-i3 ALE/Pong-v5 seed 0",
        "dqn ALE/Pong-v5 seed 0",
        "sb3-dqn ALE/Pong-v5 seed 0",
    ]
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert len(jobs) == len({job.name for job in jobs}) == 5 + 3 * 4 + 2
    assert [str(job) for job in jobs if job.variant] == [
        "gdi-i3+slow MinAtar/Breakout-v0 seed 7",
        "gdi-i3+slow ALE/Pong-v5 seed 7",
    ]
    folder = jobs[-2].folder(Path("out"))
    assert folder == Path("out/runs/ALE-Pong-v5/gdi-i3+slow/seed-7")


def test_settings_mean_what_they_mean_for_gdi_train() -> None:
    found = {(job.agent, job.env, job.seed): job for job in all_jobs(plan())}
    slow = config_of(found["gdi-i3+slow", "MinAtar/Breakout-v0", 7])
    words = ["gdi-i3", "--env", "MinAtar/Breakout-v0", "--steps", "100000", "--seed", "7", "--evaluation.episodes", "4"]
    words += ["--run.overlap", "--run.threads", "1", "--lr", "3e-4", "--controller", "multiplicative-weights"]
    assert slow == parse([*words, "--learner.reward-scales", "0.5"]).config
    dqn = config_of(found["dqn", "ALE/Pong-v5", 0])
    assert (dqn.data.batch_size_sequences, dqn.optimizer.learning_rate, dqn.evaluation.episodes) == (16, 1e-3, 4)
    peer = found["sb3-dqn", "ALE/Pong-v5", 0]
    assert peer.settings == {"evaluation.episodes": 4, "sb3.batch_size": 16}
    assert "sb3.batch_size" not in found["dqn", "ALE/Pong-v5", 0].settings


def test_a_switch_can_be_off_and_threads_can_be_more() -> None:
    text = PLAN.replace("run.overlap = true", "run.overlap = false\nrun.threads = 2")
    config = config_of(all_jobs(plan(text))[0])
    assert (config.run.overlap, config.run.threads) == (False, 2)
    assert config_of(all_jobs(plan())[0]).run.threads == 1


def test_a_plan_comes_back_from_its_text() -> None:
    assert plan(plan_to_toml(plan())) == plan()
    assert check_plan(plan(plan_to_toml(plan()))) == check_plan(plan())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.one_of(st.booleans(), st.integers(-(10**12), 10**12), st.floats(allow_nan=False), TEXTS)
SETTINGS = st.dictionaries(TEXTS.filter(lambda t: "-" not in t), st.one_of(VALUES, st.lists(VALUES).map(tuple)))


@given(SETTINGS, st.sets(st.integers(0, 10**6), min_size=1, max_size=9))
def test_any_plan_comes_back_from_its_text(settings: dict[str, Any], seeds: set[int]) -> None:
    change = Change(settings or {"a": 1}, ("dqn",), (), tuple(sorted(seeds)))
    own = {name: value for name, value in change.settings.items() if name not in ("presets", "envs", "seeds")} or {
        "a": 1
    }
    change = replace(change, settings=own)
    made = Plan(("A/b-v0",), ("dqn",), tuple(sorted(seeds)), 7, settings, {"dqn": replace(change, presets=())})
    made = replace(made, variants={"v.1": change})
    assert plan(plan_to_toml(made)) == made


def test_seeds_are_ranges_and_lists() -> None:
    assert parse_seeds("0-2, 7,5-5") == (0, 1, 2, 5, 7)
    assert seeds_text((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    for bad in ("", "1;2", "4-0", "-1", "0-99999999", "x", "1,,2"):
        with pytest.raises(UserError, match="seed"):
            parse_seeds(bad)


def test_environments_have_folders_of_their_own() -> None:
    assert slug("MinAtar/Breakout-v0") == "MinAtar-Breakout-v0"
    assert slug("/home/me/my env.py:Env") == "home-me-my-env.py-Env"
    long = slug("/" + "x" * 200 + ".py:Env"), slug("/" + "x" * 201 + ".py:Env")
    assert long[0] != long[1]
    assert max(map(len, long)) < 100
    with pytest.raises(UserError, match="would share a folder"):
        check_plan(replace(plan(TINY.format(steps=9)), envs=("MinAtar/Breakout-v0", "MinAtar:Breakout-v0")))


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"MinAtar/Breakout-v0"', '"MinAtar/Braekout-v0"', "unknown environment"),
        ('"gdi-i3", "dqn"', '"gdi-i4", "dqn"', "unknown preset 'gdi-i4'. Did you mean 'gdi-i3'"),
        ('"0-2,7"', '"a-b"', "seeds 'a-b' cannot be read"),
        ('"0-2,7"', "[0, -1]", "seeds must be a list of whole numbers"),
        ("1e5", "0", "steps must be a whole number greater than 0, not 0"),
        ("1e5", "2.5", "steps must be a whole number"),
        ("1e5", '"many"', "steps must be a whole number"),
        ("steps = 1e5", "", "steps is missing"),
        ("seeds =", "seed =", "unknown key 'seed'. Did you mean 'seeds'"),
        ("lr = 1e-3", "learner.discuont = 0.9", "unknown option --learner.discuont. Did you mean '--learner.discount'"),
        ("lr = 1e-3", "lr = 'fast'", "needs a number, not"),
        ("lr = 1e-3", "lerner.discount = 0.9", "unknown setting 'lerner.discount'. Did you mean 'learner'"),
        ("lr = 1e-3", "seed = 3", "seed is not a setting"),
        ("lr = 1e-3", "env.id = 'x'", "env.id is not a setting"),
        ("lr = 1e-3", "placement.actors = 3", "unknown setting 'placement.actors'"),
        ("lr = 1e-3", "json = true", "unknown setting 'json'"),
        ("lr = 1e-3", "scale = 'huge'", "unknown scale 'huge'"),
        ("lr = 1e-3", "learner.discount = 2.0", "--learner.discount"),
        ("lr = 1e-3", "lr = 1979-05-27", "must be a number, a text"),
        ("sb3.batch_size", "sb3.bach_size", "unknown setting sb3.bach_size. Did you mean 'sb3.batch_size'"),
        ("sb3.batch_size = 16", "sb3.batch_size = 'x'", "sb3.batch_size must be a number"),
        ("sb3.batch_size", "sb3.n_epochs", "settings.sb3.n_epochs: no preset of the plan has this setting"),
        ("[preset.dqn]", "[preset.ppo]", "preset.ppo names ppo, which is not among the plan's presets"),
        ("seeds = 7", "seeds = 5", "variants.slow names 5, which is not among the plan's seeds"),
        ("[variants.slow]", '[variants."a/b"]', "variants.a/b: a name has letters"),
        ('presets = ["gdi-i3"]', "", "variants.slow: sb3-dqn has no setting optimizer.learning_rate"),
        ('envs = "pong"', 'envs = "breakout"', "preset.dqn names ALE/Breakout-v5"),
        ("[settings]", "settings = 3\n[x]", "unknown key 'x'"),
        ("envs = [", "envs = [[", "is not a TOML file"),
        ('controller = "multiplicative-weights"', 'controller = "bandit"', "unknown --controller 'bandit'"),
        (
            'presets = ["gdi-i3"]\nseeds = 7',
            'presets = ["dqn"]\nseeds = 7',
            "variants.slow has no job: widen",
        ),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    old: str, new: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in PLAN
    (tmp_path / "plan.toml").write_text(PLAN.replace(old, new, 1))
    line = error_line(["sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")], capsys)
    assert told in line
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


GRID = ["--env", "CartPole-v1", "--presets", "gdi-i3", "--seeds", "0", "--steps", "100", "--out", "out"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing to run"),
        (GRID[:-2], "--out is missing"),
        (GRID[2:], "--env is missing: add it."),
        (GRID[:4], "--seeds and --steps and --out are missing: add them."),
        ([*GRID, "--seeds", "3-1"], "error: '3-1' is not a range: write the smaller seed first, as in 1-3."),
        (["missing.toml"], "missing.toml does not exist"),
        ([".", "--out", "x"], "drop --out"),
        (["."], "is not the folder of a sweep"),
        (["status", "."], "is not the folder of a sweep"),
        (["status"], "missing DIR"),
        ([*GRID, "-j", "0"], "'0' must be greater than 0"),
        ([*GRID, "--minutes", "nan"], "'nan' must be greater than 0"),
        ([*GRID, "--retry", "-1"], "--retry must be 0 or more"),
        ([*GRID, "--retyr", "1"], "Did you mean '--retry'"),
        ([*GRID, "--backend", "slurm"], "--backend"),
        ([*GRID, "--ray-address", "auto"], "--ray-address needs --backend ray"),
        (["x.toml", *GRID], "drop --env, --presets, --seeds, --steps"),
    ],
)
def test_bad_words_are_one_line(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(PLAN)
    assert told in error_line(["sweep", *words], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["x.toml"]


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from gdi.sweep import peer_settings

    monkeypatch.setattr(peer_settings, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"sb3-.* need Stable-Baselines3, which is not installed"):
        check_plan(plan())
    check_plan(plan(TINY.format(steps=9)))


# ------------------------------------------------------------------------------------------------- the folder's plan


def test_a_plan_may_grow_and_nothing_else(tmp_path: Path) -> None:
    small = plan()
    store_plan(tmp_path, small)
    assert stored_plan(tmp_path) == small
    grown = plan(PLAN.replace('"0-2,7"', '"0-9"').replace('"pong"]', '"pong", "CartPole-v1"]'))
    assert difference(small, grown) is None
    for old, new, told in (
        ("1e5", "3e5", "steps was 100000 and is now 300000"),
        ('"0-2,7"', '"0-1,7"', "gdi-i3 MinAtar/Breakout-v0 seed 2 is not in it any more"),
        ("episodes = 4", "episodes = 5", "evaluation.episodes of gdi-i3 was 4 and is now 5"),
        ("3e-4", "4e-4", "optimizer.learning_rate of gdi-i3+slow was 0.0003 and is now 0.0004"),
        ("run.overlap = true", "", "run.overlap of gdi-i3 was True and is now not set"),
        ("[0.5]", "[0.5, 0.5]", r"learner.reward_scales of gdi-i3\+slow was \[0.5\] and is now \[0.5, 0.5\]"),
    ):
        with pytest.raises(UserError, match=told.replace("gdi-i3+", r"gdi-i3\+")):
            check_growth(tmp_path, plan(PLAN.replace(old, new)))
    store_plan(tmp_path, grown)
    assert stored_plan(tmp_path) == grown
    with pytest.raises(UserError, match="any more"):
        store_plan(tmp_path, small)


def test_another_plan_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    store_plan(out, read_plan(write_plan(tmp_path, 2000)))
    line = error_line(["sweep", str(write_plan(tmp_path, 3000)), "--out", str(out)], capsys)
    assert "has another plan: steps was 2000 and is now 3000" in line
    assert read_plan(out / "plan.toml").steps == 2000


def test_a_folder_of_something_else_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    line = error_line(["sweep", str(write_plan(tmp_path)), "--out", str(tmp_path / "out")], capsys)
    assert "is no folder of a sweep" in line
    line = error_line(["sweep", str(write_plan(tmp_path)), "--out", str(tmp_path / "tiny.toml")], capsys)
    assert "tiny.toml is a file" in line


def test_a_folder_whose_sweep_was_killed_before_it_had_a_plan_is_new(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    (tmp_path / ".plan.toml.12.part").touch()
    assert stored_plan(tmp_path) is None


# ------------------------------------------------------------------------------------------------- status and CSV files


def leave_run(sweep: Path, job: Job, means: tuple[float, ...] = (1.0, 2.0), *, saved: bool = True) -> Path:
    """Leave a run folder whose evaluations have these means, the last at its end."""
    folder = job.folder(sweep)
    (folder / "checkpoints").mkdir(parents=True)
    if saved:
        (folder / "checkpoints" / f"step-{job.steps:012d}-update-000000001").mkdir()
    else:
        (folder / "checkpoints" / f"step-{job.steps - 1:012d}-update-000000001").mkdir()
    (folder / "config.json").write_text(config_to_json(config_of(job)))
    add_evaluations(folder, job, means)
    return folder


def add_evaluations(folder: Path, job: Job, means: tuple[float, ...]) -> None:
    with (folder / "metrics.jsonl").open("a") as log:
        for number, mean in enumerate(means, 1):
            steps = job.steps * number // len(means)
            line = {"kind": "evaluation", "steps": steps, "frames": steps, "updates": 1, "mean": mean, "min": 0}
            line |= {"max": 9, "episodes": 2, "returns": [mean - 0.5, mean + 0.5], "clock": {"seconds": 3.04 * number}}
            log.write(json.dumps(line) + "\n")


@pytest.fixture
def tiny(tmp_path: Path) -> SweepFolder:
    """The folder of a tiny sweep in which nothing was done."""
    folder = SweepFolder(tmp_path / "sweep")
    store_plan(folder.path, read_plan(write_plan(tmp_path, 2000)))
    return folder


def test_the_status_is_that_of_the_run_folder(tiny: SweepFolder) -> None:
    first, second, third, fourth = tiny.jobs()
    assert tiny.status(first).word == "none"
    folder = leave_run(tiny.path, first, saved=False)
    # The last evaluation is logged, and the checkpoint with it is not: a process was killed between the two.
    assert tiny.status(first).word == "started"
    (folder / "checkpoints" / "step-000000002000-update-000000007").mkdir()
    status = tiny.status(first)
    assert (status.word, status.steps, status.seconds) == ("finished", 2000, 6.08)
    for path in (folder / "checkpoints").iterdir():
        path.rmdir()
    assert tiny.status(first).word == "finished"  # its checkpoints were removed to save room
    leave_run(tiny.path, second, (1.0,))
    log = second.folder(tiny.path) / "metrics.jsonl"
    log.write_bytes(log.read_bytes()[:-1])  # the last line was cut
    assert tiny.status(second).word == "started"
    third.folder(tiny.path).mkdir(parents=True)
    assert tiny.status(third).word == "none"
    folder = leave_run(tiny.path, fourth, (), saved=False)
    (folder / "outcome.json").write_text('{"status": "diverged", "steps": 70}')
    assert (tiny.status(fourth).word, tiny.status(fourth).steps) == ("diverged", 70)
    (folder / "outcome.json").write_text("half")
    assert tiny.status(fourth).word == "started"


def test_a_log_that_grows_is_read_again(tiny: SweepFolder) -> None:
    job = tiny.jobs()[0]
    folder = leave_run(tiny.path, job, ())
    reader = StatusReader(tiny.path)
    assert reader.read(job).word == "started"
    add_evaluations(folder, job, (1.0, 2.0, 3.0))
    assert [line["mean"] for line in reader.read(job).evaluations] == [1.0, 2.0, 3.0]
    add_evaluations(folder, job, (4.0,))  # as after a resume: the same steps again
    assert [line["mean"] for line in reader.read(job).evaluations] == [1.0, 2.0, 4.0]


def test_steps_are_those_of_the_last_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    assert reached_steps(log) == 0
    line = {"kind": "train", "steps": 500, "frames": 500, "updates": 1, "clock": {"seconds": 1.0}}
    log.write_text("x" * 100_000 + "\n" + json.dumps(line) + '\n{"kind": "tr')
    assert reached_steps(log) == 500


def test_results_have_each_ended_run_once(tiny: SweepFolder) -> None:
    first, second, third, fourth = tiny.jobs()
    leave_run(tiny.path, first, (1.0, 2.0))
    (leave_run(tiny.path, second, (3.0,), saved=False) / "outcome.json").write_text('{"steps": 70}')
    tiny.note_failure(first, Failure(2, -9, "old"))
    tiny.note_failure(third, Failure(2, 1, 'a "line", with commas'))
    tiny.rebuild()
    assert rows(tiny.path / "results.csv") == [
        {
            **{"env": "MinAtar/Breakout-v0", "preset": "gdi-i3", "variant": "", "seed": "0", "steps": "2000"},
            **{"status": "finished", "mean": "2", "returns": "1.5 2.5"},
        },
        {
            **{"env": "MinAtar/Breakout-v0", "preset": "fixed", "variant": "", "seed": "0", "steps": "70"},
            **{"status": "diverged", "mean": "3", "returns": "2.5 3.5"},
        },
    ]
    (failure,) = rows(tiny.path / "failures.csv")  # that of the finished job is gone
    assert (failure["seed"], failure["exit_code"], failure["message"]) == ("1", "1", 'a "line", with commas')
    found = rows(tiny.path / "evaluations.csv")
    assert tuple(found[0]) == EVALUATION_COLUMNS
    assert [(row["agent"], row["steps"], row["seconds"]) for row in found] == [
        ("gdi-i3", "1000", "3.0"),
        ("gdi-i3", "2000", "6.1"),
    ]
    assert not (tiny.path / "scores.csv").exists()
    before = {path.name: path.read_bytes() for path in tiny.path.glob("*.csv")}
    tiny.rebuild()
    assert {path.name: path.read_bytes() for path in tiny.path.glob("*.csv")} == before
    leave_run(tiny.path, fourth)
    tiny.rebuild()
    assert len(rows(tiny.path / "results.csv")) == 3


def test_a_process_with_an_older_view_overwrites_no_row(tiny: SweepFolder) -> None:
    """While one process makes the files, a second one with one more result waits for it."""
    first, second, *_ = tiny.jobs()
    leave_run(tiny.path, first)
    other = SweepFolder(tiny.path)
    thread = threading.Thread(target=other.rebuild)
    write = tiny._write

    def slow(found: Any) -> None:
        leave_run(tiny.path, second)
        thread.start()
        thread.join(0.3)
        write(found)

    tiny._write = slow  # type: ignore[method-assign]
    tiny.rebuild()
    thread.join(60)
    assert [row["preset"] for row in rows(tiny.path / "results.csv")] == ["gdi-i3", "fixed"]


def test_a_plan_that_grew_keeps_the_rows_of_new_jobs(tiny: SweepFolder, tmp_path: Path) -> None:
    """A driver that began with the smaller plan makes the files as well."""
    grown = replace(tiny.plan(), seeds=(0, 1, 2))
    store_plan(tiny.path, grown)
    leave_run(tiny.path, all_jobs(grown)[-1])
    tiny.rebuild()
    assert [row["seed"] for row in rows(tiny.path / "results.csv")] == ["2"]


def test_gdi_scores_reads_the_atari_games(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path)
    store_plan(tmp_path, plan(PLAN.replace('"dqn", "sb3-dqn"', '"dqn"').replace("sb3.batch_size = 16", "")))
    for job in folder.jobs():
        leave_run(tmp_path, job, (float(job.seed),))
    folder.rebuild()
    agents = {agent.name: agent for agent in load_agents([str(tmp_path / "scores.csv")]).agents}
    assert set(agents) == {"gdi-i3", "gdi-i3+slow", "dqn"}
    scores = agents["gdi-i3"].scores
    assert sorted(scores[scores == scores]) == [0, 1, 2, 7]


def test_a_refused_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    write_whole(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(gdi.errors.StorageError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["x.csv"]


# ------------------------------------------------------------------------------------------------- settings of runs


def test_runs_of_other_settings_are_not_mixed_in(tiny: SweepFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder = leave_run(tiny.path, tiny.jobs()[1])
    stored = json.loads((folder / "config.json").read_text())
    stored["learner"]["discount"] = 0.5
    (folder / "config.json").write_text(json.dumps(stored))
    line = error_line(["sweep", str(tiny.path)], capsys)
    assert "learner.discount was 0.5 and is now" in line
    assert "fixed/seed-0" in line


def test_a_setting_that_only_one_side_knows_is_no_difference() -> None:
    assert first_difference({"a": 1, "gone": 2}, {"a": 1, "new": 3}) is None
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 2}}) == ("a.b", 1, 2)


# ------------------------------------------------------------------------------------------------- the driver


class FakeAttempt:
    """An attempt that ends after a few looks at it, in place of a process."""

    alive = most = 0
    codes: dict[str, list[int]] = {}  # noqa: RUF012  # exit codes by job, the last again and again
    endless = False

    def __init__(self, sweep: Path, job: Job) -> None:
        self.job, self.sweep, self.steps, self._looks, self._code = job, sweep, 0, 0, None
        FakeAttempt.alive += 1
        FakeAttempt.most = max(FakeAttempt.most, FakeAttempt.alive)

    def exit_code(self) -> int | None:
        self._looks += 1
        if self._code is None and self._looks > 2 and not FakeAttempt.endless:
            codes = FakeAttempt.codes.get(str(self.job), [0])
            self._end(codes.pop(0) if len(codes) > 1 else codes[0])
            if self._code == 0:
                leave_run(self.sweep, self.job)
        return self._code

    def _end(self, code: int) -> None:
        self._code = code
        FakeAttempt.alive -= 1

    def message(self) -> str:
        return f"message {self._code}"

    def stop(self) -> None:
        if self._code is None:
            self._end(-15)

    kill = stop


class Screen:
    def __init__(self) -> None:
        self.told: list[str] = []

    def steps(self, job: Job, steps: int) -> None: ...

    def ended(self, job: Job, outcome: str, result: str = "") -> None:
        self.told.append(f"{job}: {outcome}")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeAttempt]:
    FakeAttempt.alive = FakeAttempt.most = 0
    FakeAttempt.codes, FakeAttempt.endless = {}, False
    monkeypatch.setattr(driver, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.0)
    return FakeAttempt


def drive(folder: SweepFolder, screen: Screen, stop: Any = lambda: False, **options: Any) -> driver.Outcome:
    options = {"at_once": 2, **options}
    made = Driver(folder, lambda job, claim: FakeAttempt(folder.path, job), Options(**options), screen)
    return made.run(folder.jobs(), stop)


def test_the_driver_runs_everything_and_then_nothing_again(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    fake.codes = {"fixed MinAtar/Breakout-v0 seed 0": [2]}
    screen = Screen()
    outcome = drive(tiny, screen)
    assert (len(outcome.ended), len(outcome.failed), fake.most, fake.alive) == (3, 1, 2, 0)
    assert "fixed MinAtar/Breakout-v0 seed 0: failed (exit code 2): message 2" in screen.told
    assert rows(tiny.path / "failures.csv")[0]["attempt"] == "1"  # bad input is not tried again
    assert len(rows(tiny.path / "results.csv")) == 3
    assert all(tiny.claims.state(job.name).is_free for job in tiny.jobs())
    fake.codes, fake.most = {}, 0
    outcome = drive(tiny, screen)
    assert (len(outcome.ended), fake.most) == (1, 1)
    assert rows(tiny.path / "failures.csv") == []
    fake.most = 0
    assert drive(tiny, screen).ended == []
    assert fake.most == 0


def test_a_crash_is_tried_again_as_often_as_asked(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    name, screen = "gdi-i3 MinAtar/Breakout-v0 seed 0", Screen()
    for retries, codes, attempts in ((0, [-9, 0], 1), (2, [1, -9, 1, 0], 3)):
        fake.codes = {name: list(codes)}
        outcome = drive(tiny, screen, retries=retries)
        assert [str(job) for job in outcome.failed] == [name]
        (failure,) = rows(tiny.path / "failures.csv")
        assert (failure["attempt"], failure["exit_code"]) == (str(attempts), str(codes[attempts - 1]))
    fake.codes = {name: [-9, 0]}
    outcome = drive(tiny, screen, retries=1)
    assert (outcome.failed, [str(job) for job in outcome.ended]) == ([], [name])


def test_a_stop_and_the_end_of_the_time_start_nothing_more(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    fake.endless = True
    for options in ({"stop": lambda: fake.most == 2}, {"seconds": 0.05}):
        fake.most, screen = 0, Screen()
        outcome = drive(tiny, screen, **options)
        assert (outcome.ended, outcome.failed, fake.most, fake.alive) == ([], [], 2, 0)
        assert [line.partition(": ")[2] for line in screen.told] == ["stopped", "stopped"]
        assert all(tiny.claims.state(job.name).is_free for job in tiny.jobs())


def test_an_interrupted_driver_leaves_no_process_and_no_claim(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    fake.endless = True

    def second_ctrl_c() -> bool:
        if fake.most == 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        drive(tiny, Screen(), second_ctrl_c)
    assert fake.alive == 0
    assert all(tiny.claims.state(job.name).is_free for job in tiny.jobs())


def test_a_full_disk_stops_everything_and_is_no_failure(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    fake.codes = {"gdi-i3 MinAtar/Breakout-v0 seed 0": [74]}
    with pytest.raises(gdi.errors.StorageError, match="message 74"):
        drive(tiny, Screen())
    tiny.rebuild()
    assert rows(tiny.path / "failures.csv") == []
    assert fake.alive == 0


def test_jobs_of_others_are_left_to_them(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    jobs = tiny.jobs()
    held = tiny.claims.acquire(jobs[1].name)
    assert held is not None
    outcome = drive(tiny, Screen())
    assert ([str(job) for job in outcome.elsewhere], len(outcome.ended)) == ([str(jobs[1])], 3)
    held.release()
    assert [str(job) for job in drive(tiny, Screen()).ended] == [str(jobs[1])]


def test_a_job_of_another_machine_is_left_to_it_after_a_sign_of_life(
    tiny: SweepFolder, fake: type[FakeAttempt]
) -> None:
    """Without one, its driver may have died less than a minute ago, and nobody else would take the job."""
    first = tiny.jobs()[0]
    held = tiny.claims.acquire(first.name)
    assert held is not None
    held.adopt([Holder("another machine", 1, "1")])
    rounds = 0

    def stop() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 200:
            held.beat()
        return rounds > 2000

    outcome = drive(tiny, Screen(), stop)
    assert 200 <= rounds < 2000
    assert (outcome.elsewhere, len(outcome.ended)) == ([first], 3)
    rounds = 200
    os.utime(held.path, (1, 1))  # it is silent for long
    assert drive(tiny, Screen(), stop).ended == [first]


def test_a_job_that_ended_before_its_claim_is_not_run(
    tiny: SweepFolder, fake: type[FakeAttempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver finishes it after the first look and before the claim."""
    first = tiny.jobs()[0]
    acquire = type(tiny.claims).acquire

    def slow(claims: Any, name: str) -> Any:
        if name == first.name and not first.folder(tiny.path).exists():
            leave_run(tiny.path, first)
        return acquire(claims, name)

    monkeypatch.setattr(type(tiny.claims), "acquire", slow)
    assert first not in drive(tiny, Screen()).ended
    assert tiny.claims.state(first.name).is_free


def test_a_failure_of_another_driver_is_not_tried_again(tiny: SweepFolder, fake: type[FakeAttempt]) -> None:
    first, *_, last = tiny.jobs()
    tiny.note_failure(first, Failure(2, 1, "of an earlier session"))

    def note() -> bool:
        if tiny.failure(last) is None:
            tiny.note_failure(last, Failure(2, 1, "of another driver, just now"))
        return False

    outcome = drive(tiny, Screen(), note, at_once=1)
    assert first in outcome.ended
    assert last not in outcome.ended


def test_an_attempt_whose_claim_was_lost_is_killed(
    tiny: SweepFolder, fake: type[FakeAttempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.endless = True
    monkeypatch.setattr(driver, "HEARTBEAT_SECONDS", 0.0)
    first = tiny.jobs()[0]
    taken = tiny.path / "claims" / f"{first.name}.2"

    def take() -> bool:
        if fake.most and not taken.exists():
            taken.write_text("{}")
        return taken.exists() and fake.alive == 0

    screen = Screen()
    drive(tiny, screen, take, at_once=1)
    assert screen.told[0] == f"{first}: taken over by another process"
    assert tiny.failure(first) is None
    assert not tiny.claims.state(first.name).is_free


# ------------------------------------------------------------------------------------------------- what it will need


def trial(speed: float = 100.0, memory: int = 1 << 30) -> Trial:
    return Trial(speed, memory, 1 << 20)


def test_the_hours_are_those_of_finished_jobs_or_of_a_trial(tiny: SweepFolder) -> None:
    jobs = tiny.jobs()
    trials = {kind_of(jobs[0]): trial(100.0), kind_of(jobs[1]): trial(50.0)}
    found = estimate.estimate(jobs, trials, tiny.status, 2, tiny.path)
    assert (found.jobs, found.done, found.left) == (4, 0, 4)
    assert found.seconds == pytest.approx((2 * 2000 / 100 + 2 * 2000 / 50) / 2)
    assert (found.memory_bytes, found.disk_bytes) == (2 << 30, 4 << 20)
    leave_run(tiny.path, jobs[0])  # took 6.08 s
    found = estimate.estimate(jobs, trials, tiny.status, 2, tiny.path)
    assert (found.done, found.left) == (1, 3)
    assert found.seconds == pytest.approx((6.08 + 2 * 2000 / 50) / 2)
    (leave_run(tiny.path, jobs[1], (1.0,), saved=False) / "metrics.jsonl").write_text("")
    add_evaluations(jobs[1].folder(tiny.path), replace(jobs[1], steps=1000), (1.0,))  # half is done
    found = estimate.estimate(jobs, trials, tiny.status, 1, tiny.path)
    assert found.seconds == pytest.approx(6.08 + 1000 / 50 + 2000 / 50)
    found = estimate.estimate(jobs, trials, tiny.status, 8, tiny.path)
    assert found.seconds == pytest.approx(2000 / 50)  # no job is split
    unknown = estimate.estimate(jobs[1::2], {}, tiny.status, 1, tiny.path)
    assert "Time: unknown." in unknown.text()
    leave_run(tiny.path, jobs[2])
    assert "and 2 jobs of unknown speed" not in estimate.estimate(jobs, trials, tiny.status, 1, tiny.path).text()


def test_each_kind_of_job_is_tried_once(tiny: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, bool]] = []

    def try_jobs(jobs: Any, timed: Any, at_once: int) -> dict[Job, Trial]:
        tried.extend((str(job), timed(job)) for job in jobs)
        return {job: trial() for job in jobs}

    monkeypatch.setattr(estimate, "try_jobs", try_jobs)
    grown = replace(tiny.plan(), variants={"slow": Change({"lr": 1e-4})})
    jobs = all_jobs(grown)
    found = estimate.missing_trials(jobs, {}, tiny.status, 2)
    assert tried == [
        ("gdi-i3 MinAtar/Breakout-v0 seed 0", True),
        ("gdi-i3+slow MinAtar/Breakout-v0 seed 0", False),
        ("fixed MinAtar/Breakout-v0 seed 0", True),
        ("fixed+slow MinAtar/Breakout-v0 seed 0", False),
    ]
    tried.clear()
    assert estimate.missing_trials(jobs, found, tiny.status, 2) == {}
    leave_run(tiny.path, tiny.jobs()[0])
    estimate.missing_trials(jobs, {}, tiny.status, 2)
    assert tried[0] == ("gdi-i3+slow MinAtar/Breakout-v0 seed 0", False)
    estimate.remember_trials(tiny.path, found)
    assert estimate.known_trials(tiny.path) == found


def test_only_as_many_jobs_run_as_fit_into_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "available_memory_bytes", lambda: 10 << 30)
    assert estimate.fitting([trial(memory=3 << 30), trial(memory=1 << 30)], 8) == 3
    assert estimate.fitting([trial(memory=1 << 30)], 8) == 8
    assert estimate.fitting([], 8) == 8
    monkeypatch.setattr(estimate, "available_memory_bytes", lambda: None)
    assert estimate.fitting([trial(memory=11 << 30)], 8) == 8
    monkeypatch.setattr(estimate, "available_memory_bytes", lambda: 10 << 30)
    with pytest.raises(UserError, match=r"a job needs about 11\.0 GiB, but only 10\.0 GiB are available"):
        estimate.fitting([trial(memory=11 << 30)], 8)


def test_a_trial_measures_a_job_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(probe, "MEASURE_SECONDS", 0.1)
    job = all_jobs(plan(TINY.format(steps=100_000)))[0]
    found = probe.try_gdi(job, timed=True)
    assert found.steps_per_second > 50
    assert found.memory_bytes > 500 << 20
    assert found.disk_bytes > 0
    assert probe.try_gdi(replace(job, steps=300), timed=True).steps_per_second > 50  # shorter than a trial
    assert probe.try_gdi(job, timed=False) == replace(found, steps_per_second=0.0)
    assert list(tmp_path.iterdir()) == []


def arguments(*words: str) -> Any:
    return command.make_parser().parse_args([*GRID, *words])


def test_a_long_sweep_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    day = 24 * 3600.0
    command.ask_if_long(day, arguments())
    command.ask_if_long(2 * day, arguments("--yes"))
    command.ask_if_long(2 * day, arguments("--minutes", "60"))
    with pytest.raises(UserError, match="this sweep takes about 48 h 00 min: add --yes to start it"):
        command.ask_if_long(2 * day, arguments("--minutes", "9999"))

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(command.sys, "stdin", Terminal())
    for answer, starts in (("y", True), ("Yes ", True), ("", False), ("n", False)):
        monkeypatch.setattr("builtins.input", lambda text, answer=answer: answer)
        if starts:
            command.ask_if_long(2 * day, arguments())
        else:
            with pytest.raises(UserError, match="not started"):
                command.ask_if_long(2 * day, arguments())


def test_the_pace_forgets_what_was_done_before() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    resumed, fresh = (Job("E", "p", "", seed, 1000) for seed in (1, 2))
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


# ------------------------------------------------------------------------------------------------- the whole command


@pytest.mark.kill
def test_a_sweep_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command runs the jobs as gdi train would, and ends with tables and figures."""
    sweep = tmp_path / "sweep"
    plan_file = str(write_plan(tmp_path, 1000, TINY.replace("every_steps = 1000", "every_steps = 500")))
    assert main(["sweep", plan_file, "--out", str(sweep), "--plan"]) == 0
    out = capsys.readouterr().out
    assert "Jobs: 4 (0 done, 4 left), 2 at a time." in out
    assert "Disk: less than 0.1 GiB of " in out
    assert not sweep.exists()
    assert main(["sweep", plan_file, "--out", str(sweep), "-j", "2"]) == 0
    out = capsys.readouterr().out
    assert "mean [95% interval]" in out
    assert len(list((sweep / "figures").glob("*.png"))) > 2
    assert [row["status"] for row in rows(sweep / "results.csv")] == ["finished"] * 4
    alone, job = tmp_path / "alone", SweepFolder(sweep).jobs()[1]
    assert main(["train", *job.words(), "--run-dir", str(alone), "--json"]) == 0
    assert read_metric_lines(alone) == read_metric_lines(job.folder(sweep))
    capsys.readouterr()
    # A run folder of a sweep is one like any other.
    folder = str(job.folder(sweep))
    assert main(["train", "--run-dir", folder, "--resume", "--json"]) == 0
    assert main(["evaluate", folder, "--episodes", "2", "--json"]) == 0
    assert main(["report", folder]) == 0
    assert main(["report", str(sweep / "runs"), "-o", str(tmp_path / "all.html")]) == 0
    capsys.readouterr()
    assert main(["sweep", "status", str(sweep)]) == 0
    assert main(["sweep", str(sweep)]) == 0
    assert "All 4 jobs are done." in capsys.readouterr().out
    # It may grow.
    grown = str(
        write_plan(tmp_path, 1000, TINY.replace("every_steps = 1000", "every_steps = 500").replace("0-1", "0-2"))
    )
    assert main(["sweep", grown, "--out", str(sweep), "-j", "2"]) == 0
    with (sweep / "results.csv").open() as file:
        assert [row["seed"] for row in csv.DictReader(file)] == ["0", "1", "2"] * 2


def test_the_display_shows_ends_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    jobs = [Job("E", "p", "", seed, 1000) for seed in (1, 2)]
    console = Console(force_terminal=False, soft_wrap=True)
    with Display(jobs, 3, console) as screen:
        screen.steps(jobs[0], 0)
        screen.steps(jobs[0], 500)
        screen.ended(jobs[0], "failed (exit code 1): why. It is tried again")
        screen.steps(jobs[0], 700)
        screen.ended(jobs[0], "finished", "mean 60.91, 3 s")
        screen.ended(jobs[1], "taken over by another process")
    assert capsys.readouterr().out.splitlines() == [
        "p E seed 1: failed (exit code 1): why. It is tried again",
        "4 of 5  p E seed 1: finished, mean 60.91, 3 s",
        "p E seed 2: taken over by another process",
    ]
