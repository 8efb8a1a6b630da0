"""A run folder names a module: who made the folder decides whether opening it may import that module."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import pytest

import gdi
from gdi.cli.main import main
from gdi.errors import UserError
from gdi.runtime.seal import state_folder
from helpers import error_line, stop_after, tiny_config

SOURCE = """
from pathlib import Path

import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

with Path(__file__).with_suffix(".imports").open("a") as file:
    file.write("imported\\n")


class Env(CartPoleEnv):
    pass


gymnasium.register(f"{__name__}-v0", entry_point=Env, max_episode_steps=50)
"""
OWN, EVIL = "users_own_env", "evil_env"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's module and a stranger's, both on the path of imports."""
    for name in (OWN, EVIL):
        (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget()


def forget() -> None:
    for name in (OWN, EVIL):
        sys.modules.pop(name, None)
        gymnasium.registry.pop(f"{name}-v0", None)


def is_imported(modules: Path, name: str) -> bool:
    return (modules / f"{name}.imports").exists()


@pytest.fixture
def run_dir(modules: Path) -> Path:
    """A stopped run of the user's environment, as a new session of the same user finds it."""
    result = gdi.train(tiny_config(f"{OWN}:{OWN}-v0", steps=600), modules / "run", console=stop_after(200))
    assert not result.finished
    forget()
    (modules / f"{OWN}.imports").unlink()
    return result.run_dir


def swap_module(run_dir: Path) -> None:
    path = run_dir / "config.json"
    path.write_text(path.read_text().replace(OWN, EVIL))


def another_user(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is unpacked elsewhere: its files belong to the reader, the maker's key does not."""
    monkeypatch.setenv("XDG_STATE_HOME", str(run_dir.parent / "state of another user"))


OPENERS: dict[str, Callable[[Path], object]] = {
    "evaluate": lambda folder: main(["evaluate", str(folder), "--episodes=1"]),
    "load": gdi.load,
    "resume": lambda folder: main(["train", "--resume", "--run-dir", str(folder)]),
}


@pytest.mark.parametrize("opener", OPENERS)
def test_who_made_the_folder_opens_it(opener: str, run_dir: Path, modules: Path) -> None:
    moved = run_dir.rename(modules / "moved")
    assert OPENERS[opener](moved) != 2
    assert is_imported(modules, OWN)


@pytest.mark.parametrize("who", ["edited", "another user"])
def test_a_folder_from_elsewhere_imports_nothing(
    who: str, run_dir: Path, modules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if who == "edited":
        swap_module(run_dir)
    else:
        another_user(run_dir, monkeypatch)
    name = EVIL if who == "edited" else OWN
    for words in (["evaluate", str(run_dir)], ["train", "--resume", "--run-dir", str(run_dir)]):
        line = error_line(words, capsys)
        assert f"env.id is the environment {name}-v0 of the module {name}" in line
        assert "--trust" in line
    with pytest.raises(UserError, match=f"the module {name}"):
        gdi.load(run_dir)
    assert not is_imported(modules, name)


def test_the_seal_of_one_folder_does_not_open_another(run_dir: Path, modules: Path) -> None:
    stranger = shutil.copytree(run_dir, modules / "stranger")
    swap_module(stranger)
    shutil.copy(run_dir / ".seal", stranger / ".seal")
    with pytest.raises(UserError, match=EVIL):
        gdi.load(stranger)
    assert not is_imported(modules, EVIL)


@pytest.mark.parametrize("how", ["--trust", "--env"])
def test_the_caller_allows_it_by_trust_or_by_the_name(
    how: str, run_dir: Path, modules: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    another_user(run_dir, monkeypatch)
    words = ["--trust"] if how == "--trust" else ["--env", f"{OWN}:{OWN}-v0"]
    assert main(["train", "--resume", "--run-dir", str(run_dir), "--json", *words]) == 0
    assert '"steps": 600' in capsys.readouterr().out


def test_in_python_a_config_a_class_or_an_import_names_the_module(
    run_dir: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another_user(run_dir, monkeypatch)
    module = __import__(OWN)
    forget()
    assert gdi.load(run_dir, classes=[module.Env]).steps > 0
    assert gdi.load(run_dir).steps > 0  # this process has imported the module by now
    forget()
    assert gdi.train(tiny_config(f"{OWN}:{OWN}-v0", steps=600), run_dir, resume=True).finished


def test_the_key_is_the_users_alone_and_only_where_a_module_is_named(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    plain = gdi.train(tiny_config("CartPole-v1", steps=40), tmp_path / "plain").run_dir
    assert not (plain / ".seal").exists()
    assert not (tmp_path / "state").exists()
    gdi.train(tiny_config(f"{OWN}:{OWN}-v0", steps=40), tmp_path / "named")
    assert (state_folder() / "key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "named" / ".seal").stat().st_size == 2 * 32


def test_without_a_home_a_run_goes_on_and_opening_it_asks(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file, so no folder can be made below it")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run_dir = gdi.train(tiny_config(f"{OWN}:{OWN}-v0", steps=40), tmp_path / "named").run_dir
    forget()
    with pytest.raises(UserError, match="--trust"):
        gdi.load(run_dir)


def test_a_wrapper_of_a_strangers_module_is_not_imported(modules: Path) -> None:
    run_dir = gdi.train(tiny_config("CartPole-v1", steps=40), modules / "wrapped").run_dir
    path = run_dir / "config.json"
    path.write_text(path.read_text().replace('"wrappers": []', f'"wrappers": ["{EVIL}:Env"]'))
    assert EVIL in path.read_text()
    with pytest.raises(UserError, match=f"env.wrappers is the wrapper Env of the module {EVIL}"):
        gdi.load(run_dir)
    assert not is_imported(modules, EVIL)
