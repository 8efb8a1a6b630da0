"""Inputs that a person or a program could give by mistake or on purpose: each is one line, or works."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from gdi.cli.main import main
from gdi.config import validate
from gdi.errors import UserError
from gdi.presets import PRESETS, make_config
from helpers import error_line

TRAIN = ["train", "--env=MinAtar/Breakout-v0", "--steps=2000"]
HUGE = [
    (["gdi-i3", "--controller.num-bandits=1" + "0" * 29], "at most 1,000, not"),
    (["gdi-i3", "--controller.num-bandits=1000000000"], "at most 1,000, not"),
    (["gdi-i3", "--network.hidden-units=1" + "0" * 29], "at most 8,192, not"),
    (["gdi-i3", "--controller.tile-widths", "1" + "0" * 29], "at most 100,000, not"),
    (["gdi-i3", "--learner.rho-bar=1e308"], "at most 1,000,000,000, not"),
    (["gdi-i3", "--controller.ucb-scale=1e308"], "at most 1,000,000,000, not"),
    (["gdi-i3", "--evaluation.episodes=1" + "0" * 29], "at most 1,000,000, not"),
    (["gdi-i3", "--steps=9e17"], "--steps must be at most 1,000,000,000,000, not"),
    (["dqn", "--data.capacity-transitions=1" + "0" * 29], "at most 10,000,000,000, not"),
    (["gdi-i3", "--runtime=ray", "--placement.actors=1" + "0" * 29], "at most 100,000, not"),
]


@pytest.mark.parametrize(("words", "message"), HUGE, ids=lambda value: value[1] if isinstance(value, list) else "")
def test_a_huge_number_is_one_line_with_its_bound(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset, *rest = words
    line = error_line([TRAIN[0], preset, *TRAIN[1:], "--run-dir", str(tmp_path / "run"), *rest], capsys)
    assert message in line
    assert not (tmp_path / "run").exists()


def numbers(section: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return the dotted name and the value of every number of a config."""
    found: list[tuple[str, Any]] = []
    for f in fields(section):
        value = getattr(section, f.name)
        if is_dataclass(value):
            found += numbers(value, f"{path}{f.name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found.append((path + f.name, value))
    return found


def changed(section: Any, path: list[str], value: Any) -> Any:
    inner = value if len(path) == 1 else changed(getattr(section, path[0]), path[1:], value)
    return type(section)(**{**vars(section), path[0]: inner})


@pytest.mark.parametrize("preset", PRESETS)
def test_every_number_of_every_preset_has_a_bound(preset: str) -> None:
    config = make_config(preset, "MinAtar/Breakout-v0")
    for name, value in numbers(config):
        for huge in (type(value)(10) ** 31, -(type(value)(10) ** 31)):
            with pytest.raises(UserError, match=r"must be|at most"):
                validate(changed(config, name.split("."), huge))


def test_the_seed_has_64_bits() -> None:
    config = make_config("gdi-i3", "CartPole-v1")
    assert validate(changed(config, ["seed"], 2**63 - 1)).seed == 2**63 - 1
    with pytest.raises(UserError, match="seed must be at most"):
        validate(changed(config, ["seed"], 2**63))


DAMAGED_SCORES = {
    "comments.csv": "# one\n# two\n",
    "commas.csv": ",,,\n,,\n",
    "digits.json": '{"pong": ' + "9" * 5000 + "}",
    "many digits.json": '{"pong": ' + "9" * 400 + "}",
    "deep.json": "[" * 100_000,
    "huge.csv": "game,score\npong,1e308\n",
    "control.csv": 'game,score\n"po\nng",3\n',
    "control.json": '{"po\\nng": 3}',
    "surrogate.json": '{"\\ud800": 3}',
    "bell.csv": "game,score\np\x07ong,3\n",
}


@pytest.mark.parametrize("name", DAMAGED_SCORES)
def test_damaged_scores_are_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(DAMAGED_SCORES[name])
    line = error_line(["scores", str(path)], capsys)
    assert len(line) < 400


@pytest.mark.parametrize("name", ["\x1b[31mred", "\ud800", "two\nlines", "\u202e"])
def test_a_name_does_not_steer_the_terminal(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({name: {"pong": 20.0}}))
    assert main(["scores", str(path), "--against=none"]) == 0
    out = capsys.readouterr().out
    out.encode()
    assert all(character.isprintable() or character == "\n" for character in out)


def test_an_error_does_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in error_line(["evaluate", str(tmp_path / "\x1b[31mred")], capsys)


def a_run(folder: Path, **last: Any) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"env": {"id": "ALE/Pong-v5"}}))
    line = {"kind": "evaluation", "mean": 20.0, "frames": 1000, "protocol": "paper", **last}
    (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    return folder


@pytest.mark.parametrize("last", [{"frames": -5}, {"frames": float("nan")}, {"frames": 10**400}, {"mean": 1e308}])
def test_a_run_with_impossible_numbers_is_one_line(
    last: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "its last evaluation" in error_line(["scores", str(a_run(tmp_path / "run", **last))], capsys)


@pytest.mark.parametrize("line", ["[" * 100_000, "9" * 5000 + "x"])
def test_a_damaged_line_of_a_run_is_one_line(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = a_run(tmp_path / "run")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(line + "\n")
    assert "not JSON" in error_line(["scores", str(folder)], capsys)


@pytest.mark.parametrize("frames", ["1e-5", "0.5", "1e300", "0"])
def test_frames_are_a_number_of_frames(frames: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.csv").write_text("pong,3\n")
    assert "--frames" in error_line(["scores", str(tmp_path / "mine.csv"), "--frames", frames], capsys)


@pytest.mark.parametrize(
    "words",
    [
        ["theory", "--trials=1", "--figures", ""],
        ["scores", ""],
        ["scores", "a" * 300],
        ["scores", "x=" + "a" * 300],
        ["evaluate", ""],
        ["evaluate", "a" * 300],
        ["evaluate", "runs/" + "a" * 300 + "/b"],
        ["train", "--env=CartPole-v1", "--run-dir", ""],
        ["train", "--env=CartPole-v1", "--run-dir", "a" * 300],
        ["train", "--env=" + "a" * 300],
        ["train", "x" * 300],
        ["train", "--env=CartPole-v1", "--run.no-overlap", "x" * 300],
        ["actors", "a" * 300, "3"],
        ["train", "--resume", "--run-dir", "a" * 300],
    ],
)
def test_a_path_that_is_none_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    error_line(words, capsys)


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl"])
@pytest.mark.parametrize("command", ["evaluate", "scores", "resume"])
def test_a_pipe_where_a_file_should_be_is_one_line(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = a_run(tmp_path / "run")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    words = ["train", "--resume", "--run-dir"] if command == "resume" else [command]
    error_line([*words, str(folder)], capsys)


def test_scores_from_a_named_pipe_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "a pipe" in error_line(["scores", str(tmp_path / "pipe.csv")], capsys)


@pytest.mark.parametrize("word", ["", " ", "a b", "\n"])
def test_a_word_of_blanks_too_many_is_one_line(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_line(["algorithms", word], capsys).startswith("gdi: error: unexpected argument ")


@pytest.mark.parametrize("command", ["play", "evaluate", "report", "watch", "scores"])
def test_a_name_that_no_disk_takes_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    error_line([command, "x" * 300], capsys)


@pytest.mark.parametrize("command", ["evaluate", "report", "watch"])
def test_the_name_of_an_argument_keeps_its_capitals(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_line([command, "x" * 300], capsys).startswith("gdi: error: RUN")
