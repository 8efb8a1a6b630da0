"""Conversion of configs of earlier formats.

Format 1 has one algorithm, and its section ``learner`` also holds the settings of data, optimizer and hardware.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gdi.config.controller import ControllerConfig
from gdi.config.data import ExactReplayConfig
from gdi.config.optimizer import AdamWConfig
from gdi.errors import UserError

FORMAT = 2

# Fields of format 1 that are in another section of this format, by dotted name. The command line accepts both.
MOVED = {
    **{f"learner.{field.name}": f"data.{field.name}" for field in fields(ExactReplayConfig)},
    **{f"learner.{field.name}": f"optimizer.{field.name}" for field in fields(AdamWConfig)},
    "learner.workers": "run.workers",
    "network.reward_shapes": "learner.reward_shapes",
    "network.reward_scales": "learner.reward_scales",
}
# Fields that came after the first runs of a format, by section and kind, with the value that those runs had.
LATE_FIELDS: dict[tuple[str, str | None], dict[str, Any]] = {
    ("run", None): {"precision": "float32", "save_replay": True, "states_per_stage": 0},
    ("evaluation", None): {"greedy": False, "index": []},
    ("env", None): {
        **{"kwargs": [], "wrappers": [], "action_bins": 0, "processes": 0},
        **{"timeout_seconds": 0.0, "restart_on_error": 0},
    },
    ("network", None): {"activation": "tanh", "normalize": False},
    ("optimizer", "adamw"): {"schedule": "linear"},
    ("data", "exact"): {"slice_steps": 0},
}


def upgrade(data: Any) -> Any:
    """Convert the parsed JSON of any known format to the current format.

    Unknown fields stay, because the reader reports them.
    """
    found = data.get("format", 1) if isinstance(data, dict) else FORMAT
    if found == FORMAT:
        return _with_late_fields(data)
    if isinstance(found, int) and found > FORMAT:
        raise UserError(f"config.json has format {found}, and this version of gdi reads up to {FORMAT}: update gdi.")
    if found != 1:
        raise UserError(f"config.json has the unknown format {found!r}: the file is damaged.")
    return _with_late_fields(_from_format_1(data))


def _with_late_fields(data: Any) -> Any:
    """Add the fields that came later. The optimizer had no kind before it had two."""
    if not isinstance(data, dict):
        return data
    new = {name: dict(section) if isinstance(section, dict) else section for name, section in data.items()}
    if isinstance(new.get("optimizer"), dict):
        new["optimizer"] = {"kind": "adamw", **new["optimizer"]}
    for (name, kind), late in LATE_FIELDS.items():
        if isinstance(new.get(name), dict) and new[name].get("kind") == kind:
            new[name] = {**late, **new[name]}
    return new


def _from_format_1(data: dict[str, Any]) -> dict[str, Any]:
    old = {name: dict(section) if isinstance(section, dict) else section for name, section in data.items()}
    for source, target in MOVED.items():
        (section, field), (new_section, new_field) = source.split("."), target.split(".")
        if isinstance(old.get(section), dict) and field in old[section]:
            old.setdefault(new_section, {})[new_field] = old[section].pop(field)
    if isinstance(old.get("controller"), dict):
        old["controller"] = _controller_of_its_kind(old["controller"])
    for name, kind in (("index_space", "gdi"), ("learner", "gdi"), ("data", "exact")):
        if isinstance(old.get(name), dict):
            old[name] = {"kind": kind, **old[name]}
    return {"format": FORMAT, **old}


def _controller_of_its_kind(controller: dict[str, Any]) -> dict[str, Any]:
    """Keep only the fields of the controller's kind, because format 1 has the fields of all kinds."""
    for cls in ControllerConfig.__args__:
        if cls.kind == controller.get("kind"):
            known = {field.name for field in fields(cls)}
            foreign = {f.name for other in ControllerConfig.__args__ for f in fields(other)} - known
            return {name: value for name, value in controller.items() if name not in foreign}
    return controller
