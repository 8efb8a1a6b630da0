"""What can go wrong with a run: kills, signals, damage, divergence. Nothing is lost, nothing is hidden."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import gdi
from gdi.cli.main import main
from gdi.clock import Clock
from gdi.config import config_to_json
from gdi.errors import DivergenceError, UserError
from gdi.evaluation import Evaluator
from gdi.learner import Learner
from gdi.runtime.checkpoint import CheckpointStore, CorruptCheckpointError, flatten, read_checkpoint, write_checkpoint
from helpers import RecordingConsole, error_line, read_metric_lines, saved_network, stop_after, tiny_config, with_lstm
from processes import CommandProcess

SMALL = [
    "--seed=3",
    "--env.num-envs=8",
    "--network.hidden-units=16",
    "--data.batch-size-sequences=8",
    "--data.sequence-steps=5",
    "--evaluation.every-steps=2000",
    "--evaluation.episodes=4",
    "--run.log-every-steps=250",
    "--run.checkpoint-every-steps=500",
    "--run.threads=1",
]


def wait_for_checkpoints(process: CommandProcess, run_dir: Path, count: int) -> None:
    deadline = time.monotonic() + 240
    while len(list(run_dir.glob("checkpoints/step-*"))) < count:
        assert not process.has_ended(), process.end()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_lines_after_a_checkpoint(process: CommandProcess, run_dir: Path) -> None:
    """And leave the process standing there: a resumed run must take these lines back."""

    def newer_bytes() -> int:
        state = CheckpointStore(run_dir / "checkpoints", 3, pytest.fail).newest()
        return (
            0
            if state is None
            else (run_dir / "metrics.jsonl").stat().st_size - int(state["run"]["log"]["metrics.jsonl"])
        )

    deadline = time.monotonic() + 240
    while True:
        process.send(signal.SIGSTOP)
        if newer_bytes() > 0:
            return
        process.send(signal.SIGCONT)
        assert not process.has_ended(), process.end()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.kill
@pytest.mark.parametrize("env", ["MinAtar/Breakout-v0", "CartPole-v1"])
def test_sigkill_in_the_middle_then_resume(tmp_path: Path, env: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir, copy = tmp_path / "run", tmp_path / "copy"
    process = CommandProcess("train", "--env", env, "--steps=2000", *SMALL, "--run-dir", str(run_dir))
    wait_for_checkpoints(process, run_dir, 1)
    wait_for_lines_after_a_checkpoint(process, run_dir)
    process.send(signal.SIGKILL)
    assert process.end()[0] == -signal.SIGKILL  # not at its end
    shutil.copytree(run_dir, copy)
    for folder in (run_dir, copy):
        assert main(["train", "--run-dir", str(folder), "--resume", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["steps"], result["finished"]) == (2000, True)
    lines = read_metric_lines(run_dir)
    assert lines == read_metric_lines(copy)  # two resumes of one checkpoint are identical
    steps = [line["steps"] for line in lines if line["kind"] == "train"]
    # One line for each multiple of 250 that was passed: none lost, none twice.
    assert [s // 250 for s in steps] == list(range(1, 9))
    assert steps[-1] == 2000
    with (run_dir / "episodes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == lines[-2]["episodes"]


@pytest.mark.kill
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_exit_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    run_dir = tmp_path / "run"
    process = CommandProcess("train", "--env=MinAtar/Breakout-v0", "--steps=2e6", *SMALL, "--run-dir", str(run_dir))
    wait_for_checkpoints(process, run_dir, 1)
    process.send(number)
    code, out, err = process.end()
    assert code == -number  # a shell that runs commands in a loop ends the loop, too
    assert "--resume" in out
    assert "Traceback" not in err
    assert saved_network(run_dir)


def test_damaged_newest_checkpoint_falls_back_with_a_warning(
    tmp_path: Path, stopped_run: Path, whole_run: Path
) -> None:
    config = tiny_config()
    part = shutil.copytree(stopped_run, tmp_path / "part")
    newest = sorted((part / "checkpoints").glob("step-*"))[-1]
    tensors = newest / "tensors.safetensors"
    data = bytearray(tensors.read_bytes())
    data[len(data) // 2] ^= 1  # one flipped bit
    tensors.write_bytes(data)
    listener = RecordingConsole()
    resumed = gdi.train(config, part, resume=True, console=listener)
    (told,) = listener.notices
    assert newest.name in told
    assert "checksum" in told
    assert resumed.steps == config.steps
    assert read_metric_lines(resumed.run_dir) == read_metric_lines(whole_run)


def test_a_checkpoint_is_kept_beside_a_damaged_one_of_a_later_step(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, 1, lambda text: None)
    state = {"θ": np.zeros(1)}
    store.save(100, 1, state, best=True)
    (store.save(900, 9, state) / "state.json").write_text("{}")
    assert store.newest() is not None  # that of step 100
    kept = [store.save(steps, steps // 100, state) for steps in (200, 300)]
    assert [path.exists() for path in kept] == [False, True]


def test_killed_before_its_first_checkpoint_starts_over(tmp_path: Path, whole_run: Path) -> None:
    config = tiny_config()
    folder = tmp_path / "part"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.json").write_text(config_to_json(config))
    (folder / "metrics.jsonl").write_text('{"kind": "train", "steps": 1}\n')
    (folder / "episodes.csv").write_text("half a li")
    gdi.train(config, folder, resume=True)
    assert read_metric_lines(folder) == read_metric_lines(whole_run)
    assert (folder / "episodes.csv").read_bytes() == (whole_run / "episodes.csv").read_bytes()


def test_checkpoints_kept_are_the_newest_and_the_best(tmp_path: Path) -> None:
    config = tiny_config(steps=4000)
    config = replace(config, run=replace(config.run, keep_checkpoints=2))
    result = gdi.train(config, tmp_path / "run")
    kept = {path.name for path in (result.run_dir / "checkpoints").glob("step-*")}
    best = json.loads((result.run_dir / "checkpoints" / "best.json").read_text())["checkpoint"]
    assert best in kept
    assert len(kept - {best}) <= 2
    means = {line["steps"]: line["mean"] for line in read_metric_lines(result.run_dir) if line["kind"] == "evaluation"}
    assert gdi.load(result.run_dir, best=True).steps == max(means, key=lambda steps: (means[steps], -steps))
    assert gdi.load(result.run_dir).steps == 4000


def test_a_checkpoint_cannot_hold_or_run_code(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="cannot hold"):
        flatten({"a": object()}, "", {})
    folder = tmp_path / "step-1"
    write_checkpoint(folder, {"a": torch.ones(2), "b": {"c": [1, 2.5, None, "x", np.arange(3, dtype=np.uint32)]}})
    state = read_checkpoint(folder)
    assert state["b"]["c"][:4] == [1, 2.5, None, "x"]
    np.testing.assert_array_equal(state["b"]["c"][4], np.arange(3, dtype=np.uint32))
    (folder / "tensors.safetensors").write_bytes(b"\x80\x04 a pickle, not ours")
    with pytest.raises(CorruptCheckpointError, match="checksum"):
        read_checkpoint(folder)


ARRAYS = {
    **{
        dtype: np.arange(6).reshape(2, 3).astype(dtype)
        for dtype in ("?", "i1", "u1", "i2", "f2", "i4", "f4", "i8", "f8")
    },
    "scalar": np.array(3.5),
    "empty": np.zeros((0, 4), np.float32),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "every second": np.arange(9)[::2],
    "another byte order": np.arange(4, dtype=">f4"),
}


def test_a_checkpoint_holds_arrays_of_every_kind_as_the_library_reads_them(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "it", dict(ARRAYS))
    found = load_file(tmp_path / "it" / "tensors.safetensors")
    assert len(found) == len(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[f"/{name}"], array)
        assert found[f"/{name}"].dtype == array.dtype.newbyteorder("=")
        assert found[f"/{name}"].shape == array.shape
    assert read_checkpoint(tmp_path / "it").keys() == ARRAYS.keys()  # the hash is that of the file


def test_nothing_in_the_package_can_unpickle() -> None:
    source = "\n".join(path.read_text() for path in Path(gdi.__file__).parent.rglob("*.py"))
    for word in ("pickle", "torch.load", "torch.save"):
        assert word not in source.replace("allow_pickle=False", "")


def test_an_interrupted_write_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CheckpointStore(tmp_path, 3, pytest.fail)
    store.save(1, 1, {"a": 1})

    def fail(*args: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("gdi.runtime.checkpoint.write_tensors", fail)
    with pytest.raises(OSError, match="no space"):
        store.save(2, 2, {"a": 2})
    assert store.newest() == {"a": 1}
    monkeypatch.undo()
    for value in range(3, 15):  # the same moment again and again: always beside the old one
        store.save(2, 2, {"a": value})
        assert store.newest() == {"a": value}
    assert len(list(tmp_path.glob("step-*"))) == 3
    assert not list(tmp_path.glob(".step*"))


def test_a_stop_during_an_evaluation_keeps_it_due(
    tmp_path: Path, whole_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config()
    evaluate = Evaluator.evaluate

    def interrupted(self: Evaluator, *args: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(self, *args)

    monkeypatch.setattr(Evaluator, "evaluate", interrupted)
    for _ in range(3):  # the first evaluation, again, and again
        part = gdi.train(config, tmp_path / "part", resume=True)
        assert not part.finished
    monkeypatch.undo()
    resumed = gdi.train(config, tmp_path / "part", resume=True)
    assert read_metric_lines(resumed.run_dir) == read_metric_lines(whole_run)


def poison(monkeypatch: pytest.MonkeyPatch, is_poisoned: Any) -> None:
    """Make the learner see rewards that are not finite in the calls that ``is_poisoned`` names."""
    update, calls = Learner.update, iter(range(10**9))

    def poisoned(self: Learner, batch: Any) -> Any:
        if is_poisoned(next(calls)):
            batch = replace(batch, reward=np.full_like(batch.reward, np.nan))
        return update(self, batch)

    monkeypatch.setattr(Learner, "update", poisoned)


def test_divergence_saves_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, lambda call: call > 20)
    with pytest.raises(DivergenceError, match="learning-rate"):
        gdi.train(tiny_config(), tmp_path / "run")
    assert all(np.isfinite(value).all() for value in saved_network(tmp_path / "run").values())
    # Nothing of the last iteration is lost: its episodes and its skipped updates are in the logs.
    line = read_metric_lines(tmp_path / "run")[-1]
    assert line["learner/skipped_total"] == tiny_config().optimizer.max_nonfinite_updates
    with (tmp_path / "run" / "episodes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == line["episodes"]


@pytest.mark.parametrize("overlap", [False, True])
def test_a_diverged_run_resumes_where_batches_are_still_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlap: bool
) -> None:
    """And once the cause is gone it trains every transition as often as asked."""
    config = tiny_config(max_nonfinite_updates=1, batch_size_sequences=2, replay=2)
    config = replace(config, run=replace(config.run, overlap=overlap))
    poison(monkeypatch, lambda call: call in (20, 21))
    for _ in range(2):
        with pytest.raises(DivergenceError):
            gdi.train(config, tmp_path / "run", resume=True)
    result = gdi.train(config, tmp_path / "run", resume=True)
    assert result.finished
    assert result.steps == config.steps
    learner = CheckpointStore(tmp_path / "run" / "checkpoints", 1, lambda text: None).newest()["system"]["learner"]
    assert learner["trained_transitions"] == config.steps * config.data.replay


def test_a_theta_that_is_not_finite_ends_as_divergence_while_acting_too(tmp_path: Path) -> None:
    """Too few updates a window for the learner to give up first: the actor meets θ before."""
    config = tiny_config(learning_rate=1e20, warmup_updates=0, batch_size_sequences=16, replay=1, replay_span_windows=1)
    with pytest.raises(DivergenceError, match="policy became NaN or infinite"):
        gdi.train(config, tmp_path / "run")
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


@pytest.mark.parametrize(("steps", "every_steps"), [(400, 40), (40, 1000)])
def test_a_theta_that_is_not_finite_ends_as_divergence_in_an_evaluation_too(
    tmp_path: Path, steps: int, every_steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One update after the first window of 8 x 5 steps, and an evaluation of it: on the way, or at the run's end."""
    config = tiny_config(steps=steps, learning_rate=1e20, warmup_updates=0, replay=1)
    config = replace(config, evaluation=replace(config.evaluation, every_steps=every_steps))
    folder = tmp_path / "run"
    with pytest.raises(DivergenceError, match="policy became NaN or infinite"):
        gdi.train(config, folder)
    assert list((folder / "checkpoints").glob("step-*"))
    assert len(read_metric_lines(folder)) == 1
    with pytest.raises(DivergenceError, match="policy became NaN or infinite"):
        gdi.train(config, folder, resume=True)
    assert "training diverged" in error_line(["evaluate", str(folder)], capsys)


@pytest.mark.parametrize("gone", ["checkpoints", "checkpoints/step-*"])
def test_a_run_whose_checkpoints_are_gone_keeps_its_logs(
    tmp_path: Path, whole_run: Path, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(whole_run, tmp_path / "run")
    (folder / "checkpoints" / "best.json").unlink()
    for path in folder.glob(gone):
        shutil.rmtree(path)
    before = (folder / "metrics.jsonl").read_bytes()
    assert "checkpoints" in error_line(["train", "--run-dir", str(folder), "--resume"], capsys)
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path: Path, whole_run: Path) -> None:
    """Also where a line of the log stands already at the step of that checkpoint."""
    config = tiny_config()
    folder = gdi.train(config, tmp_path / "run", console=stop_after(300)).run_dir
    line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
    for steps in (250, 500):
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({**line, "steps": steps}) + "\n")
    for path in folder.glob("checkpoints/step-*"):
        shutil.rmtree(path)
    resumed = gdi.train(config, folder, resume=True)
    assert read_metric_lines(resumed.run_dir) == read_metric_lines(whole_run)


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = gdi.train(tiny_config("CartPole-v1", steps=200), tmp_path / "run").run_dir
    config = (folder / "config.json").read_text()
    for old, new, words in (
        ('"torso": "auto"', '"torso": "resnet"', "torso must be one of"),
        ('"hidden_units": 16', '"hidden_units": 24', "was config.json changed"),
    ):
        (folder / "config.json").write_text(config.replace(old, new))
        assert words in error_line(["evaluate", str(folder)], capsys)
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    assert "cannot be read" in error_line(["evaluate", str(folder)], capsys)


def test_a_checkpoint_that_the_disk_does_not_give_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back to the one before would cut the logs, and this one may be readable again."""
    store = CheckpointStore(tmp_path, 3, pytest.fail)
    for step in (1, 2):
        store.save(step, step, {"a": step})

    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gdi.runtime.checkpoint._digest", refuse)
    with pytest.raises(UserError, match="Permission denied"):
        store.newest()


def test_the_first_speed_of_a_resumed_run_is_of_its_own_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "lap", lambda self: (1.0, {}))  # so that the speed is the number of steps it counts
    config = tiny_config()
    config = replace(config, run=replace(config.run, log_every_steps=900))
    stopped = gdi.train(config, tmp_path / "run", console=stop_after(700))
    gdi.train(config, tmp_path / "run", resume=True)
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    first, second = (line for line in lines if line["kind"] == "train")
    assert first["clock"]["steps_per_second"] == first["steps"] - stopped.steps
    assert second["clock"]["steps_per_second"] == second["steps"] - first["steps"]


def test_skipped_updates_are_counted_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, lambda call: call == 30)
    result = gdi.train(tiny_config(), tmp_path / "run")
    lines = [line for line in read_metric_lines(result.run_dir) if line["kind"] == "train"]
    assert lines[-1]["learner/skipped_total"] == 1
    assert all(np.isfinite(v) for line in lines for v in line.values() if isinstance(v, float))


def test_a_divergence_with_overlap_is_told_as_one_and_saved(tmp_path: Path) -> None:
    """Several batches are due when the learner gives up: there is no room for the window sampled meanwhile."""
    config = tiny_config(learning_rate=1e30, max_nonfinite_updates=1, batch_size_sequences=2, replay=2)
    config = replace(config, run=replace(config.run, overlap=True))
    with pytest.raises(DivergenceError):
        gdi.train(config, tmp_path / "run")
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))
    lines = [line for line in read_metric_lines(tmp_path / "run") if line["kind"] == "train"]
    assert lines


def test_a_window_that_diverges_with_overlap_is_taken_back_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its steps, its episodes, what the controller drew and learned, and the games: as if it had not been played."""
    config = with_lstm(tiny_config(max_nonfinite_updates=1, burn_in_steps=2))
    config = replace(config, run=replace(config.run, overlap=True))
    with monkeypatch.context() as patch:
        poison(patch, lambda call: call == 33)
        with pytest.raises(DivergenceError):
            gdi.train(config, tmp_path / "diverged")
    states = [CheckpointStore(tmp_path / "diverged" / "checkpoints", 1, lambda text: None).newest()["system"]]
    steps = states[0]["steps"]
    gdi.train(config, tmp_path / "stopped", console=stop_after(steps))  # the same windows, without the poison
    states.append(CheckpointStore(tmp_path / "stopped" / "checkpoints", 1, lambda text: None).newest()["system"])
    assert states[1]["steps"] == steps > 200
    rows = [(tmp_path / name / "episodes.csv").read_text() for name in ("diverged", "stopped")]
    assert rows[0] == rows[1]
    assert rows[0].count("\n") == 1 + states[0]["episodes"] == 1 + states[1]["episodes"]
    for part in ("controllers", "actor"):
        tensors: list[dict[str, Any]] = [{}, {}]
        trees = [flatten(state[part], part, found) for state, found in zip(states, tensors, strict=True)]
        for tree in trees:  # θ, which one update more or less has changed
            if part == "actor":
                tree["common"].pop("network"), tree["common"].pop("version")
        assert trees[0] == trees[1]
        for name, array in tensors[0].items():
            if "/network/" not in name and "version" not in name:
                np.testing.assert_array_equal(array, tensors[1][name], err_msg=name)
