"""Conversion of a config to JSON and back.

A section with kinds names its kind, and a user's own kind is written as ``module:Class``. Reading a file imports no
module only because the file names it: that would run code of unknown origin. ``config.trust`` decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

from gdi.config.imports import add_to_path
from gdi.config.trust import Trust, module_of
from gdi.config.upgrade import FORMAT, upgrade
from gdi.config.whole import SECTIONS, Config, kind_of
from gdi.errors import UserError, did_you_mean

# The sections that have kinds.
KIND_SECTIONS = ("index_space", "controller", "learner", "optimizer", "data")


def config_to_json(config: Config) -> str:
    """Return the config as JSON, in the current format."""
    data = asdict(replace(config, env=replace(config.env, given=None)))
    del data["env"]["given"]
    for name in KIND_SECTIONS:
        data[name] = {"kind": kind_of(getattr(config, name)), **data[name]}
    return json.dumps({"format": FORMAT, **data}, indent=2) + "\n"


def config_from_json(
    text: str, *, classes: Iterable[type] = (), modules: Iterable[str] = (), trust: bool = False
) -> Config:
    """Read a config from the JSON of this format or an earlier one.

    An unknown or missing field is an error and does not get a default. ``classes`` are the caller's own kinds,
    ``modules`` are those that the text may name, and ``trust`` allows every module.
    """
    allowed = Trust.of(classes, modules, everything=trust)
    try:
        data = upgrade(json.loads(text))
    except RecursionError:
        raise UserError("config.json is nested too deeply: the file is damaged.") from None
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name != "format"}
        for name in KIND_SECTIONS:
            if name in data and not isinstance(data[name], dict):
                raise UserError(f"config.json: {name}. must be an object.")
            if name in data:
                data[name] = _section(name, dict(data[name]), allowed)
    config = _build(Config, data, "")
    assert isinstance(config, Config)
    if isinstance(config.env.id, str):
        allowed.require_environment(config.env.id)
    for wrapper in filter(lambda one: isinstance(one, str), config.env.wrappers):
        allowed.require_wrapper(wrapper)
    return config


def own_modules(config: Config) -> set[str]:
    """Return the modules outside gdi that a config names: of its environment, and of its own kinds."""
    named = {module_of(name) for name in (config.env.id, *config.env.wrappers)}
    return {cls.__module__ for cls in own_classes(config)} | (named - {""})


def kinds(section: str) -> dict[str, type[Any]]:
    """Return our kinds of a section by name."""
    hint = get_type_hints(Config)[section]
    return {cls.kind: cls for cls in get_args(hint) or (hint,)}


def own_classes(config: Config) -> list[type]:
    """Return the section classes of this config that are not part of gdi."""
    found = [type(getattr(config, name)) for name in SECTIONS]
    return [cls for cls in found if cls.__module__.partition(".")[0] != "gdi"]


def _section(name: str, data: dict[str, Any], allowed: Trust) -> Any:
    kind = data.pop("kind", None)
    if not isinstance(kind, str):
        raise UserError(f"config.json: {name} has no kind; the file is damaged.")
    cls = kinds(name).get(kind) or allowed.classes.get(kind)
    if cls is None and ":" in kind:
        cls = _import_class(name, kind, allowed)
    if cls is None:
        known = kinds(name)
        raise UserError(
            f"config.json: unknown kind {kind!r} of {name}.{did_you_mean(kind, known)} Kinds: {', '.join(known)}."
        )
    return _build(cls, data, f"{name}.")


def _import_class(name: str, kind: str, allowed: Trust) -> type[Any]:
    module, _, path = kind.partition(":")
    allowed.require(name, f"the class {path}", module)
    try:
        add_to_path(Path.cwd())  # as ``python`` does, and a console script does not
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # the module's code may raise anything
        said = " ".join(str(error).split()) or "no message"
        raised = "" if isinstance(error, (ImportError, AttributeError, ValueError)) else f"{type(error).__name__}: "
        raise UserError(
            f"config.json: {name} is {kind}, which cannot be imported: {raised}{said}.{_import_advice(error, path)}"
        ) from None
    if not (isinstance(found, type) and is_dataclass(found)):
        raise UserError(f"config.json: {name} is {kind}, which is not a dataclass.")
    return found


def _import_advice(error: BaseException, path: str) -> str:
    """Return what helps if a module or its class is not found. Any other error is one of the module's own code."""
    pass_it = f" Pass the class, as in gdi.load(run, classes=[{path}])"
    if isinstance(error, ModuleNotFoundError):
        return f"{pass_it}, or install it, or add its folder to PYTHONPATH."
    return f"{pass_it}, or move it into a module." if isinstance(error, AttributeError) else ""


def _build(cls: type[Any], data: Any, path: str) -> Any:
    if is_dataclass(data):
        return data
    if not isinstance(data, dict):
        raise UserError(f"config.json: {path or 'the file'} must be an object.")
    hints = get_type_hints(cls)
    known = {f.name for f in fields(cls) if f.compare}  # the others are objects of one process
    if set(data) != known:
        odd = sorted(set(data) ^ known)
        raise UserError(f"config.json: unknown or missing field {path}{odd[0]}; it was written by another version.")
    values = {}
    for name, value in data.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            values[name] = _build(kind, value, f"{path}{name}.")
        elif is_dataclass(value):
            values[name] = value
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return cls(**values)
