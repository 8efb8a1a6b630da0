"""The files of a run, damaged by others: nothing is claimed that is not there, and nothing is written elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdi
from gdi.cli.main import main
from gdi.errors import StorageError, UserError
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.session import stop_on_signal
from helpers import RecordingConsole, error_line, read_metric_lines, saved_network, stop_after, tiny_config
from processes import Ended, mount, own_mounts, run_child

LOGS = ("metrics.jsonl", "episodes.csv")


class Once(RecordingConsole):
    """A console that acts at the first event of a kind from a number of steps on."""

    def __init__(self, kind: str, steps: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._kind, self._steps, self._act = kind, steps, act

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        if event["kind"] == self._kind and event["steps"] >= self._steps:
            act, self._act = self._act, lambda: None
            act()


@pytest.fixture
def part(stopped_run: Path, tmp_path: Path) -> Path:
    """A run that was stopped at about 800 of its 1,200 steps."""
    return shutil.copytree(stopped_run, tmp_path / "part")


def equals(run_dir: Path, whole: Path) -> bool:
    """Return True if the logs and θ are those of an undisturbed run."""
    same = (run_dir / "episodes.csv").read_bytes() == (whole / "episodes.csv").read_bytes()
    theta, expected = saved_network(run_dir), saved_network(whole)
    return (
        same
        and read_metric_lines(run_dir) == read_metric_lines(whole)
        and all(np.array_equal(theta[name], expected[name]) for name in expected)
    )


# 1. The folder is removed or replaced during the run.


@pytest.mark.parametrize(
    ("kind", "steps", "gone"),
    [
        ("progress", 700, "."),
        ("checkpoint", 1200, "."),  # the last one: only the last look finds it
        ("progress", 700, "checkpoints"),
        ("progress", 700, "metrics.jsonl"),
        ("progress", 700, "config.json"),
        ("progress", 700, ".lock"),
    ],
)
def test_what_is_removed_is_made_again(tmp_path: Path, whole_run: Path, kind: str, steps: int, gone: str) -> None:
    folder = tmp_path / "run"

    def remove() -> None:
        path = folder / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    console = Once(kind, steps, remove)
    assert gdi.train(tiny_config(), folder, console=console).finished
    assert equals(folder, whole_run)
    assert gdi.load(folder).steps == 1200
    assert (folder / "config.json").read_bytes() == (whole_run / "config.json").read_bytes()
    assert gdi.train(tiny_config(), folder, resume=True).finished
    assert gone == "checkpoints" or any("made again" in text for text in console.notices)


def test_a_run_whose_folder_another_one_replaced_stops_and_touches_nothing(
    tmp_path: Path, whole_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"

    def replace_folder() -> None:
        folder.rename(tmp_path / "moved")
        shutil.copytree(whole_run, folder)

    with pytest.raises(StorageError, match="was replaced by another folder"):
        gdi.train(tiny_config(), folder, console=Once("progress", 700, replace_folder))
    assert content(folder) == content(whole_run)
    resumed = gdi.train(tiny_config(), tmp_path / "moved", resume=True)
    assert equals(resumed.run_dir, whole_run)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_stops_where_another_run_has_begun(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = "import sys, time; from pathlib import Path; from gdi.runtime.lock import RunLock\n"
    code += "lock = RunLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    others = []

    def begin_another() -> None:
        (folder / ".lock").unlink()
        command = [sys.executable, "-c", code, str(folder)]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        others.append(other)

    try:
        with pytest.raises(StorageError, match="replaced"):
            gdi.train(tiny_config(), folder, console=Once("progress", 700, begin_another))
    finally:
        for other in others:
            other.kill()
            other.communicate()


# 3. Links.


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize("name", ["episodes.csv", "metrics.jsonl", "states/stage-1.npz"])
def test_something_else_in_the_place_of_a_file_is_one_line(name: str, make: Any, part: Path, capsys: Any) -> None:
    path = part / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    make(path)
    line = error_line(["train", "--run-dir", str(part), "--resume"], capsys)
    assert f"{path} is not a regular file: move it away" in line


@pytest.mark.parametrize(
    "name", [".lock", "episodes.csv", "metrics.jsonl", "notices.log", "config.json", "checkpoints/best.json"]
)
def test_a_link_is_not_written_through(name: str, part: Path, tmp_path: Path, capsys: Any) -> None:
    victim = tmp_path / "victim"
    path = part / name
    shutil.copy(path, victim) if path.exists() else victim.write_text("precious")
    before = victim.read_bytes()
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    line = error_line(["train", "--run-dir", str(part), "--resume"], capsys)
    assert f"{path} is a link to {victim}" in line
    assert victim.read_bytes() == before


def test_a_checkpoint_moved_away_and_linked_back_is_one_line(part: Path, tmp_path: Path, capsys: Any) -> None:
    oldest = min((part / "checkpoints").glob("step-*"))
    oldest.rename(tmp_path / oldest.name)
    oldest.symlink_to(tmp_path / oldest.name)
    assert "is a link" in error_line(["train", "--run-dir", str(part), "--resume"], capsys)
    assert main(["evaluate", str(part), "--episodes=1"]) == 0  # only reads


def test_a_run_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert gdi.train(tiny_config(steps=40), tmp_path / "link").finished
    assert (tmp_path / "disk" / "config.json").exists()


# 4. The config.


CHANGES = {
    "seed": lambda data: data.update(seed=8),
    "discount": lambda data: data["learner"].update(discount=0.991),
    "max_episode_steps": lambda data: data["env"].update(max_episode_steps=50),
    "hidden_units": lambda data: data["network"].update(hidden_units=24),
    "env.id": lambda data: data["env"].update(id="CartPole-v1"),
    "sequence_steps": lambda data: data["data"].update(sequence_steps=6),
    "index-space": lambda data: data["index_space"]["inverse_tau_1"].update(high=60.0),
}


def change_config(run_dir: Path, name: str) -> None:
    path = run_dir / "config.json"
    data = json.loads(path.read_text())
    CHANGES[name](data)
    path.write_text(json.dumps(data, indent=2) + "\n")


def forget_facts(run_dir: Path) -> None:
    """Make the manifests those of an earlier version."""
    for path in run_dir.glob("checkpoints/*/manifest.json"):
        data = json.loads(path.read_text())
        path.write_text(json.dumps({"format": data["format"], "sha256": data["sha256"]}))


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_config_is_refused_for_resume_and_said_in_an_evaluation(
    name: str, part: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_config(part, name)
    before = content(part)
    line = error_line(["train", "--run-dir", str(part), "--resume"], capsys)
    assert "config.json was changed" in line
    assert {**content(part), ".lock": b""} == {**before, ".lock": b""}
    code = main(["evaluate", str(part), "--episodes=1"])
    told = capsys.readouterr().err
    assert code in (0, 2)
    assert "config.json" in told
    assert "changed after" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("name", CHANGES)
def test_without_hashes_a_config_that_does_not_fit_is_one_line(
    name: str, part: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_config(part, name)
    forget_facts(part)
    for words in (["evaluate", str(part), "--episodes=1"], ["train", "--run-dir", str(part), "--resume"]):
        code = main(words)
        err = capsys.readouterr().err
        assert code in (0, 2)
        assert "Traceback" not in err
        if name in ("hidden_units", "env.id", "index-space") or (name, words[0]) == ("sequence_steps", "train"):
            assert code == 2
            assert "was config.json changed after training?" in err


@pytest.mark.parametrize("key", ["system", "run", "system/learner", "run/log"])
def test_a_state_without_a_key_is_one_line(key: str, part: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest fits, as that of a checkpoint from a program with another idea of the state would."""
    newest = max((part / "checkpoints").glob("step-*"))
    state, manifest = (json.loads((newest / name).read_text()) for name in ("state.json", "manifest.json"))
    *above, last = key.split("/")
    del (state[above[0]] if above else state)[last]
    (newest / "state.json").write_text(json.dumps(state))
    manifest["sha256"]["state.json"] = hashlib.sha256((newest / "state.json").read_bytes()).hexdigest()
    (newest / "manifest.json").write_text(json.dumps(manifest))
    for words in (["evaluate", str(part), "--episodes=1"], ["train", "--run-dir", str(part), "--resume"]):
        code, err = main(words), capsys.readouterr().err
        if words[0] == "train" or key.startswith("system"):
            assert code == 2
            assert err.count("\n") == 1
            assert f"does not fit its config.json: was config.json changed after training? (KeyError: '{last}')" in err
        else:
            assert (code, err) == (0, "")  # an agent does not need it


def test_a_manifest_holds_the_hashes_of_config_and_logs(part: Path) -> None:
    newest = max((part / "checkpoints").glob("step-*"))
    manifest = json.loads((newest / "manifest.json").read_text())
    assert manifest["config"] == hashlib.sha256((part / "config.json").read_bytes()).hexdigest()
    for name in LOGS:
        assert manifest["logs"][name] == hashlib.sha256((part / name).read_bytes()).hexdigest()


def test_loading_in_python_warns_of_a_changed_config(part: Path) -> None:
    change_config(part, "discount")
    with pytest.warns(UserWarning, match="changed after its checkpoint"):
        gdi.load(part)


# 5. The logs.


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("damage", ["gone", "cut", "altered"])
def test_a_damaged_log_is_said_and_the_run_goes_on(name: str, damage: str, part: Path, whole_run: Path) -> None:
    path = part / name
    whole = path.read_bytes()
    kept = {"gone": b"", "cut": whole[: len(whole) // 2], "altered": whole.replace(b"4", b"5", 1)}[damage]
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(kept)
    console = RecordingConsole()
    assert gdi.train(tiny_config(), part, resume=True, console=console).finished
    (told,) = console.notices
    assert f"{name} is damaged: " in told
    assert {"gone": "lost", "cut": "bytes are lost", "altered": "was changed"}[damage] in told
    after = path.read_bytes()
    whole_lines = kept if damage == "altered" else kept[: kept.rfind(b"\n") + 1]
    assert after.startswith(whole_lines)  # what is readable stays
    rest = (whole_run / name).read_bytes()[len(whole) :]
    if name == "episodes.csv":
        assert after.endswith(rest)  # and the resumed run appends
    theta = saved_network(whole_run)
    assert all(np.array_equal(value, theta[key]) for key, value in saved_network(part).items())
    assert gdi.train(tiny_config(), part, resume=True).finished


def test_an_undamaged_log_is_not_called_damaged(part: Path) -> None:
    console = RecordingConsole()
    gdi.train(tiny_config(), part, resume=True, console=console)
    assert console.notices == []


@pytest.mark.parametrize("line", ['{"kind": "train", "ste', "[1]", "nul", "[" * 100_000])
def test_a_damaged_line_without_checkpoints_is_no_traceback(line: str, part: Path, capsys: Any) -> None:
    shutil.rmtree(part / "checkpoints")
    (part / "checkpoints").mkdir()
    with (part / "metrics.jsonl").open("a") as file:
        file.write(line + "\n")
    assert "checkpoints are missing" in error_line(["train", "--run-dir", str(part), "--resume"], capsys)


# 6. A full disk.


def on_a_small_disk(tmp_path: Path, size: str, *words: str) -> Ended:
    """Run gdi in a process with a small disk at tmp_path/disk; keep what was on it in tmp_path/kept."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def work() -> int:
        own_mounts()
        mount(disk, 0, f"size={size}")
        try:
            return main(list(words))
        finally:
            shutil.copytree(disk, tmp_path / "kept")

    return run_child(work, tmp_path / "output", 120)


def may_mount(tmp_path: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


SMALL = [
    *("--env=MinAtar/Breakout-v0", "--steps=2000", "--env.num-envs=8", "--network.hidden-units=16"),
    *("--data.sequence-steps=5", "--data.batch-size-sequences=8", "--run.threads=1", "--evaluation.episodes=2"),
    *("--run.checkpoint-every-steps=200", "--run.log-every-steps=100", "--evaluation.every-steps=100000"),
]


@pytest.mark.kill
@pytest.mark.parametrize("size", ["4k", "40k", "1600k"])
def test_a_full_disk_is_one_line_and_what_was_saved_stays(tmp_path: Path, size: str) -> None:
    """There is room for nothing, for the logs, or for a checkpoint or two."""
    if not may_mount(tmp_path):
        pytest.skip("this system does not let a user mount a small disk")
    ended = on_a_small_disk(tmp_path, size, "train", *SMALL, "--run-dir", str(tmp_path / "disk" / "run"))
    assert ended.code == 1, ended
    assert ended.err.count("\n") == 1
    assert "No space left on device: resume when there is room" in ended.err
    kept = tmp_path / "kept" / "run"
    if size == "1600k":
        assert saved_network(kept)
        assert not list(kept.glob("checkpoints/.*"))
    assert main(["train", *SMALL, "--run-dir", str(kept), "--resume", "--json"]) == 0


@pytest.mark.parametrize("call", ["RunLog.event", "RunLog.episode", "CheckpointStore.save"])
def test_a_refused_write_is_a_storage_error(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    target = {
        "RunLog.event": "gdi.runtime.tensorboard.EventFile.flush",
        "RunLog.episode": "gdi.runtime.log_file.LogFile.write",
        "CheckpointStore.save": "gdi.runtime.checkpoint.write_tensors",
    }[call]
    console = Once("progress", 100, lambda: monkeypatch.setattr(target, refuse))
    with pytest.raises(StorageError, match="resume when there is room"):
        gdi.train(tiny_config(), tmp_path / "run", console=console)


# 7. A folder in which nothing was trained.


HALF_MADE = {
    "a part of the config": [".config.json.part", "checkpoints/", ".lock"],
    "checkpoints": ["checkpoints/"],
    "a lock": [".lock"],
    "everything but a step": ["config.json", ".lock", "checkpoints/", "episodes.csv", "metrics.jsonl"],
}


SHORT = tiny_config(steps=400)


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gdi.train(SHORT, tmp_path_factory.mktemp("short") / "run").run_dir


@pytest.mark.parametrize("names", HALF_MADE.values(), ids=HALF_MADE)
@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_without_training_can_be_started_again(
    names: list[str], resume: bool, tmp_path: Path, short_run: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in names:
        if name.endswith("/"):
            (folder / name).mkdir()
        else:
            header = (short_run / name).read_text().splitlines(keepends=True)[:1] if name == "episodes.csv" else [""]
            (folder / name).write_text("".join(header))
    if "config.json" in names:
        shutil.copy(short_run / "config.json", folder)
    assert gdi.train(SHORT, folder, resume=resume).finished
    assert equals(folder, short_run)


@pytest.mark.parametrize("name", ["notes.txt", "checkpoints/step-000000000040-update-000000001/x", "metrics.jsonl"])
def test_a_folder_with_anything_else_is_not_empty(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_text("a line\n")
    before = content(tmp_path)
    with pytest.raises(UserError, match="not empty"):
        gdi.train(tiny_config(), tmp_path / "run")
    assert content(tmp_path) == before


# 12. Small ones.


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"checkpoint": 3}', '{"checkpoint": "../.."}', "\ud800"])
def test_a_damaged_best_json_is_called_damaged(text: str, part: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (part / "checkpoints" / "best.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    line = error_line(["evaluate", str(part), "--best"], capsys)
    assert "best.json" in line
    assert "no evaluation" not in line


@pytest.mark.parametrize("sha256", [{}, [], None, {"state.json": ""}])
def test_a_manifest_without_checksums_is_damaged(sha256: Any, part: Path) -> None:
    newest = max((part / "checkpoints").glob("step-*"))
    manifest = json.loads((newest / "manifest.json").read_text())
    (newest / "manifest.json").write_text(json.dumps({**manifest, "sha256": sha256}))
    warned: list[str] = []
    state = CheckpointStore(part / "checkpoints", 3, warned.append).newest()
    assert state is not None
    assert state["system"]["steps"] < 1200
    assert len(warned) == 1


def test_every_flipped_bit_of_a_manifest_is_seen_or_harmless(part: Path) -> None:
    """A flip inside a hash of the logs or the config is seen against the file itself."""
    newest = max((part / "checkpoints").glob("step-*"))
    path = newest / "manifest.json"
    good = path.read_bytes()
    facts = json.loads(good)
    for place in range(0, 8 * len(good), 7):
        bad = bytearray(good)
        bad[place // 8] ^= 1 << place % 8
        path.write_bytes(bad)
        warned: list[str] = []
        store = CheckpointStore(part / "checkpoints", 3, warned.append)
        try:
            store.newest()
        except UserError:
            continue  # a format of the future
        if not warned:
            known = {"config": store.facts.config, "logs": store.facts.logs}
            changed = {name for name in known if known[name] != facts[name]}
            assert json.loads(bad) == {**facts, **{name: known[name] for name in changed}}


@pytest.mark.parametrize("suffix", ["-copy", ".backup", " (1)"])
def test_a_copy_made_by_hand_is_kept(suffix: str, part: Path) -> None:
    oldest = min((part / "checkpoints").glob("step-*"))
    copy = shutil.copytree(oldest, oldest.with_name(oldest.name + suffix))
    config = tiny_config()
    assert gdi.train(config, part, resume=True).finished
    assert not oldest.exists()
    assert content(copy)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_of_either_kind_acts_as_before(first: signal.Signals, second: signal.Signals) -> None:
    heard: list[int] = []
    before = {number: signal.signal(number, lambda n, frame: heard.append(n)) for number in (first, second)}
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), first)
            assert stop()
            assert stop.signal == first
            assert heard == []
            os.kill(os.getpid(), second)
            assert heard == [second]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# 13. A stopped run in a loop of the shell.


@pytest.mark.kill
def test_ctrl_c_ends_a_loop_of_the_shell(tmp_path: Path) -> None:
    words = " ".join([sys.executable, "-m", "gdi", "train", *SMALL, "--steps=2000000", "--json"])
    script = f'for s in 0 1 2; do {words} --seed $s --run-dir "{tmp_path}/$s"; done'
    # The terminal sends Ctrl-C to the whole group of processes. If the tests run in the background of a shell, they
    # ignore it, and so would this shell.
    shell = subprocess.Popen(
        ["bash", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not list(tmp_path.glob("0/checkpoints/step-*")):
            assert shell.poll() is None, shell.communicate()
            time.sleep(0.02)
        os.killpg(shell.pid, signal.SIGINT)
        out, err = shell.communicate(timeout=60)
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == -signal.SIGINT
    assert "Traceback" not in err
    assert json.loads(out)["finished"] is False  # one line, of the first seed
    assert not (tmp_path / "1").exists()
    assert saved_network(tmp_path / "0")


def test_in_python_a_stopped_command_returns_what_a_shell_reports(tmp_path: Path, monkeypatch: Any) -> None:
    config = tiny_config(steps=2000)
    run_dir = gdi.train(config, tmp_path / "run", console=stop_after(200)).run_dir
    monkeypatch.setattr("gdi.report.console.LiveConsole", lambda *args: stop_after(600))
    assert main(["train", "--run-dir", str(run_dir), "--resume"]) == 128 + signal.SIGTERM
    assert replace(config) == config
