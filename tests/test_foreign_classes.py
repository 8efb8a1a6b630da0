"""A user's own class in a config: a run of it trains, is recorded by its name, and opens only for whoever trusts it."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gdi
from gdi.cli.main import main
from gdi.config import Config, config_from_json, config_to_json
from gdi.errors import UserError
from helpers import RecordingConsole, error_line, stop_after, tiny_config

NAME = "users_own_controller"
SOURCE = """
from dataclasses import dataclass
from pathlib import Path

from gdi.controller.static import FixedController

with (Path(__file__).parent / "imports").open("a") as file:
    file.write("imported\\n")


@dataclass(frozen=True)
class Held:
    level: float = 0.5

    def build(self, space, rng):
        return FixedController(space)

    @dataclass(frozen=True)
    class Inner:
        def build(self, space, rng):
            return FixedController(space)


class NoDataclass:
    def build(self, space, rng):
        return FixedController(space)


a_function = print
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of imports, with the user's module in it; afterwards the module is forgotten."""
    (tmp_path / f"{NAME}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop(NAME, None)


def own_module() -> ModuleType:
    return importlib.import_module(NAME)


def own_config() -> Config:
    return replace(tiny_config(steps=600), controller=own_module().Held(level=0.25))


def times_imported(folder: Path) -> int:
    marks = folder / "imports"
    return len(marks.read_text().splitlines()) if marks.exists() else 0


@pytest.fixture
def run_dir(folder: Path) -> Path:
    """A finished run of another user's class, as a new session finds it: the module is not imported."""
    result = gdi.train(own_config(), folder / "run")
    (result.run_dir / ".seal").unlink()
    sys.modules.pop(NAME)
    (folder / "imports").unlink()
    return result.run_dir


def rename_kind(run_dir: Path, kind: str, **fields: Any) -> None:
    path = run_dir / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "controller": {"kind": kind, **fields}}))


def test_the_run_records_module_and_class(run_dir: Path) -> None:
    stored = json.loads((run_dir / "config.json").read_text())
    assert stored["controller"] == {"kind": f"{NAME}:Held", "level": 0.25}
    assert stored["learner"]["kind"] == "gdi"  # ours go by a word


def test_without_trust_the_module_is_not_imported(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=f"controller is the class Held of the module {NAME}") as told:
        gdi.load(run_dir)
    assert "\n" not in str(told.value)
    assert "--trust" in error_line(["evaluate", str(run_dir)], capsys)
    assert "--trust" in error_line(["train", "--run-dir", str(run_dir), "--resume"], capsys)
    assert NAME not in sys.modules
    assert times_imported(run_dir.parent) == 0


def test_another_class_of_the_caller_does_not_open_it(run_dir: Path) -> None:
    with pytest.raises(UserError, match="not part of gdi"):
        gdi.load(run_dir, classes=[RecordingConsole])
    assert times_imported(run_dir.parent) == 0


def test_with_trust_it_opens_and_evaluates(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = gdi.load(run_dir, trust=True)
    assert agent.config.controller == own_module().Held(level=0.25)
    assert times_imported(run_dir.parent) == 1
    assert main(["evaluate", str(run_dir), "--episodes", "2", "--json", "--trust"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2


def test_the_callers_class_opens_it_without_trust(run_dir: Path) -> None:
    held = own_module().Held
    assert gdi.load(run_dir, classes=[held]).config.controller == held(level=0.25)


def test_the_command_resumes_it_with_trust(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--run-dir", str(run_dir), "--resume", "--trust", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 600


def test_who_resumes_with_the_config_has_passed_the_class(folder: Path) -> None:
    config = own_config()
    stopped = gdi.train(config, folder / "run", console=stop_after(200))
    assert not stopped.finished
    assert gdi.train(config, folder / "run", resume=True).finished
    with pytest.raises(UserError, match=r"controller\.level was 0\.25 and is now 0\.75"):
        gdi.train(replace(config, controller=own_module().Held(level=0.75)), folder / "run", resume=True)


def test_a_class_inside_a_class_is_found_by_its_whole_name(folder: Path) -> None:
    config = replace(tiny_config(), controller=own_module().Held.Inner())
    text = config_to_json(config)
    assert json.loads(text)["controller"] == {"kind": f"{NAME}:Held.Inner"}
    assert config_from_json(text, trust=True) == config
    assert config_from_json(text, classes=[own_module().Held.Inner]) == config


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (f"{NAME}:NoDataclass", "which is not a dataclass"),
        (f"{NAME}:a_function", "which is not a dataclass"),
        (f"{NAME}:Hold", "cannot be imported: module 'users_own_controller' has no attribute 'Hold'"),
        (
            "users_lost_module:Held",
            "cannot be imported: No module named 'users_lost_module'. Pass the class, as in "
            "gdi.load(run, classes=[Held]), or install it, or add its folder to PYTHONPATH.",
        ),
        ("__main__:Held", "has no attribute 'Held'. Pass the class, as in gdi.load(run, classes=[Held]), or move it"),
        (":Held", "cannot be imported"),
        (f"{NAME}:", "cannot be imported"),
    ],
)
def test_what_is_no_such_class_is_one_line(
    kind: str, words: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rename_kind(run_dir, kind, level=0.25)
    assert words in error_line(["evaluate", str(run_dir), "--trust"], capsys)
    assert words in error_line(["train", "--run-dir", str(run_dir), "--resume", "--trust"], capsys)
    with pytest.raises(UserError, match="controller"):
        gdi.load(run_dir, trust=True)


def test_fields_that_the_class_does_not_have_are_one_line(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rename_kind(run_dir, f"{NAME}:Held", level=0.25, depth=3)
    assert "unknown or missing field controller.depth" in error_line(["evaluate", str(run_dir), "--trust"], capsys)


SCRIPT = """
import sys

import gdi
import torch
from helpers import stop_after, tiny_config
from dataclasses import dataclass, replace
from gdi.controller.static import FixedController


@dataclass(frozen=True)
class Held:
    level: float = 0.5

    def build(self, space, rng):
        return FixedController(space)


if __name__ == "__main__":
    torch.set_num_threads(1)
    config = replace(tiny_config("Toy/Chain-v0", steps=400), controller=Held(level=0.25))
    console = stop_after(int(sys.argv[1]))
    print(gdi.train(config, "run", console=console, resume=True).steps)
"""


def test_a_run_of_a_script_opens_in_its_folder_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script's class is recorded under the script's name, and modules of the current folder are found."""
    (tmp_path / "users_script.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for stop, steps in (("200", "200"), ("1000", "400")):
        command = [sys.executable, "users_script.py", stop]
        assert subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True).stdout == f"{steps}\n"
    assert json.loads(Path("run/config.json").read_text())["controller"]["kind"] == "users_script:Held"
    try:
        assert main(["evaluate", "run", "--episodes", "2", "--json"]) == 0
    finally:
        sys.modules.pop("users_script", None)
    assert json.loads(capsys.readouterr().out)["episodes"] == 2


def test_a_class_of_the_running_script_has_the_scripts_name(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    held = own_module().Held
    monkeypatch.setattr(held, "__module__", "__main__")
    script, config = ModuleType("__main__"), replace(tiny_config(), controller=held())
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert '"kind": "__main__:Held"' in config_to_json(config)  # typed into Python, not in a file
    script.__file__ = str(folder / "users_script.py")
    text = config_to_json(config)
    assert '"kind": "users_script:Held"' in text
    early = text.replace("users_script:Held", "__main__:Held")
    for stored in (text, early):
        assert config_from_json(stored, classes=[held]) == config
