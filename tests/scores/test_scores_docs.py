"""docs/scores.md: its commands run, its example runs, its numbers are right."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import gdi.scores
from gdi.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "scores.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_every_command_of_the_quick_start_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(blocks("text")[0])
    commands = [line for line in blocks("bash")[0].splitlines() if line.startswith("gdi scores")]
    assert len(commands) == 6
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        # Drawing all figures is tested elsewhere, and slow.
        extra = ["--only", "page"] if "figures" in words[:2] else []
        assert main([*words, *extra]) == 0, command
    assert "703.00" not in capsys.readouterr().err
    assert Path("report.md").read_text().startswith("## mine, game by game")
    assert Path("figures/index.html").exists()


def test_the_python_example_runs(tmp_path: Path) -> None:
    (code,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True
    )
    assert done.stderr == ""
    assert "records broken: 0" in done.stdout
    assert "Agent57 4 " in done.stdout
    assert "P(mine beats MuZero) = " in done.stdout


def test_pictures_exist() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text(encoding="utf-8"))
    assert pictures
    for picture in pictures:
        assert (PAGE.parent / picture).is_file()


def test_the_docstring_of_the_package_is_true() -> None:
    result = doctest.testmod(gdi.scores)
    assert result.attempted == 4
    assert result.failed == 0
