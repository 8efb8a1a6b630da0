"""Forty bad environments and options of environments: each is one line with exit 2, and no file is touched."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

import gdi
from gdi.errors import UserError
from helpers import error_line
from own_envs import SPACES, Own

FILE = Path(__file__).parent / "own_envs.py"
OWN = "own_envs:Own"
LAST = "own_envs:Own --env.kwargs"
BAD: list[tuple[str, str]] = [
    ("CartPole-v9", "unknown environment 'CartPole-v9'"),
    ("CartPoel-v1", "Did you mean 'CartPole-v1'"),
    ("no_such_env", "unknown environment 'no_such_env'"),
    ("no_such_module:Env-v0", "there is no module 'no_such_module'"),
    ("no_such_file.py:Env", "no_such_file.py: give the path of your Python file.\n"),
    ("1module:Env", "'1module' is not a valid module name"),
    (":Env", "is not a valid module name"),
    ("own_envs:", "has neither a class or function of this name"),
    ("own_envs:Ownn", "Did you mean 'Own'"),
    ("own_envs:Own-v0", "unknown environment"),
    ("own_envs:not_callable", "not_callable is a int: name a class or a function"),
    ("own_envs:np", "np is a module: name a class or a function"),
    ("bad_syntax.py:Env", "cannot be imported: SyntaxError"),
    ("bad_import.py:Env", "there is no module 'lost_package'"),
    ("bad_code.py:Env", "cannot be imported: ZeroDivisionError: division by zero"),
    ("bad_exit.py:Env", "cannot be imported: SystemExit: 3"),
    ("bad_env.py:Raises", "cannot make environment"),
    ("bad_env.py:NoEnv", "cannot make environment"),
    ("bad_env.py:NoSpaces", "cannot make environment"),
    ("bad_env.py:BadReset", "copy 0, at a reset: KeyError: 'level': fix the environment"),
    ("bad_env.py:numbers", "cannot make environment"),
    (f'{LAST} observe="text"', "observations of text only"),
    (f'{LAST} observe="sequence"', "Sequence observations"),
    (f'{LAST} observe="sizes"', "images of several kinds"),
    (f'{LAST} observe="empty"', "empty observations"),
    (f'{LAST} observe="huge"', "1,000,000 choices"),
    (f'{LAST} observe="nothing"', "KeyError: 'nothing'"),
    (f"{LAST} nonsense=5", "unexpected keyword argument 'nonsense'"),
    (f"{LAST} length", "'length' is not of the form name=value"),
    (f"{LAST} length=long", "'long' is not a TOML value"),
    (f"{LAST} length=True", "'True' is not a TOML value"),
    (f"{LAST} length=1 length=2", "--env.kwargs length is given twice"),
    (f"{OWN} --env.wrappers TimeAwareObservation", "this is no wrapper"),
    (f"{OWN} --env.wrappers gymnasium.wrappers:NoWrapper", "unknown environment 'gymnasium.wrappers:NoWrapper'"),
    (f"{OWN} --env.wrappers own_envs:make_own", "cannot make environment"),
    ("Pendulum-v1", "add --env.action-bins 5"),
    ("Pendulum-v1 --env.action-bins 1", "--env.action-bins 1 leaves one action"),
    ("Pendulum-v1 --env.action-bins 5000", "above the limit of 4,096"),
    ("CartPole-v1 --env.action-bins 5", "applies only to Box actions"),
    ("CartPole-v1 --env.processes -1", "--env.processes must be 0 or more"),
    ("MinAtar/Breakout-v0 --env.processes 2", "applies only to Gymnasium environments"),
    ("MinAtar/Breakout-v0 --env.kwargs ramping=false", "applies only to Gymnasium environments"),
    ("pong --env.wrappers own_envs:Shift", "applies only to Gymnasium environments"),
    ("pong --env.kwargs frameskip=2", "frameskip is no setting of an Atari protocol"),
    ("pong --env.kwargs sticky_action_prob=2", "sticky_action_prob must be in [0, 1]"),
    ("pong --env.kwargs full_action_space=1", "full_action_space must be of type bool"),
    ("masked_envs:Masked --env.processes 2", "is a vector environment: set it there"),
    ("masked_envs:Masked --env.wrappers own_envs:Shift", "is a vector environment: set it there"),
    ("masked_envs:Masked --env.max-episode-steps 5", "is a vector environment: set it there"),
    ("given/Own", "was given as a Python object"),
]
FILES = {
    "bad_syntax.py": "def",
    "bad_import.py": "import lost_package",
    "bad_code.py": "1 / 0",
    "bad_exit.py": "raise SystemExit(3)",
    "bad_env.py": """
import gymnasium
from own_envs import Own

class Raises(Own):
    def __init__(self): raise RuntimeError("no\\nlicense")

class NoEnv:
    pass

class NoSpaces(gymnasium.Env):
    pass

class BadReset(Own):
    def reset(self, **options): raise KeyError("level")

def numbers(): return 5
""",
}


def test_there_are_forty_and_more() -> None:
    assert len({text for text, _ in BAD}) == len(BAD) >= 40


@pytest.mark.parametrize(("text", "message"), BAD, ids=[text for text, _ in BAD])
def test_bad_input_is_one_line_and_touches_no_file(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, source in FILES.items():
        (tmp_path / name).write_text(source)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    monkeypatch.chdir(tmp_path)
    assert message in error_line(["train", "--steps", "100", "--num-envs", "2", "--env", *text.split()], capsys)
    assert {path.name for path in tmp_path.rglob("*")} == set(FILES)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (5, "which is no environment"),
        (None, "which is no environment"),
        (Own(), "without a spec"),
        (gymnasium.vector.SyncVectorEnv, "cannot make environment"),
    ],
)
def test_objects_that_are_no_environment_are_one_line(env: object, message: str) -> None:
    from gdi.envs import make_env

    with pytest.raises(UserError, match=message) as error:
        make_env(gdi.make_config("gdi-i3", env).env, 2)
    assert "\n" not in str(error.value)
    assert SPACES
