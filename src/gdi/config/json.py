"""Conversion of a config to JSON and back.

A section with kinds names its kind, and a user's own kind is written as ``module:Class``. This module does not import a
class only because a run folder names it, because that would execute code of unknown origin. The caller passes the class
(``classes``), or allows the import (``trust``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields, is_dataclass, replace
from importlib import import_module
from typing import Any, get_args, get_type_hints

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


def config_from_json(text: str, *, classes: Iterable[type] = (), trust: bool = False) -> Config:
    """Read a config from the JSON of this format or an earlier one.

    An unknown or missing field is an error and does not get a default. ``classes`` are the caller's own kinds, and
    ``trust`` imports every module that the text names.
    """
    try:
        data = upgrade(json.loads(text))
    except RecursionError:
        raise UserError("config.json is nested too deeply: the file is damaged.") from None
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name != "format"}
        own = {f"{cls.__module__}:{cls.__qualname__}": cls for cls in classes}
        for name in KIND_SECTIONS:
            if name in data and not isinstance(data[name], dict):
                raise UserError(f"config.json: {name}. must be an object.")
            if name in data:
                data[name] = _section(name, dict(data[name]), own, trust)
    config = _build(Config, data, "")
    assert isinstance(config, Config)
    return config


def kinds(section: str) -> dict[str, type[Any]]:
    """Return our kinds of a section by name."""
    hint = get_type_hints(Config)[section]
    return {cls.kind: cls for cls in get_args(hint) or (hint,)}


def own_classes(config: Config) -> list[type]:
    """Return the section classes of this config that are not part of gdi."""
    found = [type(getattr(config, name)) for name in SECTIONS]
    return [cls for cls in found if cls.__module__.partition(".")[0] != "gdi"]


def _section(name: str, data: dict[str, Any], own: dict[str, type], trust: bool) -> Any:
    kind = data.pop("kind", None)
    if not isinstance(kind, str):
        raise UserError(f"config.json: {name} has no kind; the file is damaged.")
    cls = kinds(name).get(kind) or own.get(kind)
    if cls is None and ":" in kind:
        cls = _import_class(name, kind, trust)
    if cls is None:
        known = kinds(name)
        raise UserError(
            f"config.json: unknown kind {kind!r} of {name}.{did_you_mean(kind, known)} Kinds: {', '.join(known)}."
        )
    return _build(cls, data, f"{name}.")


def _import_class(name: str, kind: str, trust: bool) -> type[Any]:
    module, _, path = kind.partition(":")
    if not trust:
        raise UserError(
            f"config.json: {name} is the class {path} of the module {module}, which is not part of gdi. Opening it "
            "runs that module's code: say --trust (in Python trust=True, or pass the class) if you trust its source."
        )
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # the module's code may raise anything
        said = " ".join(str(error).split()) or "no message"
        raised = "" if isinstance(error, (ImportError, AttributeError, ValueError)) else f"{type(error).__name__}: "
        raise UserError(f"config.json: {name} is {kind}, which cannot be imported: {raised}{said}.") from None
    if not (isinstance(found, type) and is_dataclass(found)):
        raise UserError(f"config.json: {name} is {kind}, which is not a dataclass.")
    return found


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
