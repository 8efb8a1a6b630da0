"""The forms in which people have an environment, and one way to make copies of it.

A form is named by an id: ``CartPole-v1`` of Gymnasium's registry, ``module:Name-v0`` of a module that registers it, or
``module:Name`` of a class or function, where a file such as ``my_env.py`` may stand for the module. In Python it may
also be the class, the function, a spec or an instance itself; it then travels inside the config.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from gdi.config import EnvConfig, add_to_path
from gdi.envs import minatar
from gdi.envs.names import GIVEN, is_file_form
from gdi.errors import UserError, did_you_mean
from gdi.scores.games import GAMES


def find(config: EnvConfig) -> Any:
    """Return what the config names: a spec of Gymnasium, a class or function, or a vector environment."""
    if config.given is not None:
        return config.given
    if config.id.startswith(GIVEN):
        raise UserError(
            f"environment {config.id} was given as a Python object, which a run folder cannot hold: pass it again, as "
            "env=... of gdi.load, or in the config of gdi.train."
        )
    module_name, colon, name = config.id.rpartition(":")
    if not colon:
        return _registered(config.id, config.id)
    module = _module(config.id, module_name)
    target: Any = module
    for part in name.split("."):
        target = getattr(target, part, None)
    if callable(target):
        return target
    if target is not None:
        raise UserError(f"environment {config.id!r}: {name} is a {type(target).__name__}: name a class or a function.")
    known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
    return _registered(name, config.id, known)


def _registered(name: str, env_id: str, known: list[str] | None = None) -> EnvSpec:
    """Return Gymnasium's spec of a registered name."""
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error:
        pass
    near = did_you_mean(name, [*gymnasium.registry, *minatar.IDS, *GAMES, *(known or [])])
    advice = "Write your own environment as module:Name-v0, module:Class or file.py:Class."
    if known is not None:
        advice = "The module has neither a class or function of this name, nor does it register such an id."
    raise UserError(f"unknown environment {env_id!r}.{near} {advice}")


def _module(env_id: str, name: str) -> ModuleType:
    """Import the module in front of the colon, or the file."""
    is_file = is_file_form(env_id)
    if not is_file and not all(part.isidentifier() for part in name.split(".")):
        raise UserError(
            f"environment {env_id!r}: {name!r} is not a valid module name: write your own environment as "
            "module:Name-v0."
        )
    try:
        add_to_path(Path.cwd())  # as ``python`` does, and a console script does not
        return _imported_file(env_id, Path(name)) if is_file else import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"environment {env_id!r}: there is no module {error.name!r}: install it, or add its folder to PYTHONPATH."
        ) from None
    except UserError:  # it says all
        raise
    except (Exception, SystemExit) as error:  # the module's code may raise anything
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise UserError(f"environment {env_id!r}: {name} cannot be imported: {what}{one_line(error)}.") from None


def _imported_file(env_id: str, path: Path) -> ModuleType:
    """Import a file once, under the name of the file. The script that runs is not run again."""
    if not path.is_file():
        raise UserError(f"environment {env_id!r}: there is no file {path}: give the path of your Python file.")
    for module in (sys.modules.get("__main__"), sys.modules.get(path.stem)):
        if module is not None and _file_of(module) == path.resolve():
            return module
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # pickling needs it there
    add_to_path(path.resolve().parent)  # for its own imports
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(path.stem)
        if before is not None:
            sys.modules[path.stem] = before
        raise
    return module


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def one_line(error: BaseException) -> str:
    """Return an error's message in one line."""
    return " ".join(str(error).split()) or "no message"


def given(config: EnvConfig, env: Any) -> EnvConfig:
    """Return the config of an environment that was given in Python as an object."""
    if isinstance(env, gymnasium.vector.VectorEnv) or _is_vector(env):
        _check_vector_instance(env)
        return replace(config, id=GIVEN + type(env).__name__, given=env, num_envs=int(env.num_envs))
    if isinstance(env, gymnasium.Env):
        if env.spec is None:
            raise UserError(
                f"env is an instance of {type(env).__name__} without a spec, and several copies are needed: pass its "
                "class, or a function that makes it."
            )
        env = env.spec
    if isinstance(env, EnvSpec):
        known = gymnasium.registry.get(env.id)
        return replace(config, id=env.id) if env == known else replace(config, id=GIVEN + env.id, given=env)
    if not callable(env):
        raise UserError(
            f"env is {env!r:.60}, which is no environment: pass an id, a class, a function that makes one, a spec or a "
            "gymnasium.vector environment."
        )
    name = _importable_name(env)
    if name is None:
        inner = env.func if isinstance(env, functools.partial) else env
        return replace(config, id=GIVEN + getattr(inner, "__qualname__", type(inner).__name__), given=env)
    return replace(config, id=name, given=env if name.endswith(".py:" + env.__qualname__) else None)


def _check_vector_instance(env: Any) -> None:
    """Raise UserError if the spec of a vector environment does not make another one like it."""
    what = "" if isinstance(getattr(env, "spec", None), EnvSpec) else "has no spec"
    if isinstance(env, gymnasium.vector.VectorWrapper):
        what = "is wrapped"
    if what:
        raise UserError(
            f"env is a vector environment that {what}, and training and evaluation each need their own: pass a "
            "function of num_envs that makes it."
        )


def _importable_name(env: Any) -> str | None:
    """Return ``module:Name`` from which another process finds this object again, or None."""
    module, name = getattr(env, "__module__", None), getattr(env, "__qualname__", None)
    if not module or not name or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not env:
        return None
    if module != "__main__":
        return f"{module}:{name}"
    file = _file_of(sys.modules["__main__"])
    return f"{file}:{name}" if file is not None and file.suffix == ".py" else None


def _is_vector(env: Any) -> bool:
    """Return True for an instance with the interface of a vector environment, such as EnvPool's."""
    return not inspect.isclass(env) and all(hasattr(env, name) for name in ("num_envs", "reset", "step"))


def makes_vectors(target: Any) -> bool:
    """Return True if a class or function makes vector environments: it has a parameter ``num_envs``."""
    if _is_vector(target):
        return True
    if inspect.isclass(target) and issubclass(target, gymnasium.vector.VectorEnv):
        return True
    try:
        return "num_envs" in inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False


def wrappers(config: EnvConfig) -> list[Callable[[Any], Any]]:
    """Return the wrappers that the config names, innermost first."""
    found = []
    for name in config.wrappers:
        target = find(EnvConfig(id=name)) if ":" in name else None
        if not callable(target):
            raise UserError(
                f"--env.wrappers {name}: this is no wrapper: write module:Name, such as "
                "gymnasium.wrappers:TimeAwareObservation."
            )
        found.append(target)
    return found
