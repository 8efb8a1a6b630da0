"""Conversion of configs of earlier formats.

Format 1 has one algorithm, and its section ``learner`` also holds the settings of data, optimizer and hardware.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gdi.config.controller import ControllerConfig
from gdi.config.data import ExactReplayConfig
from gdi.config.optimizer import OptimizerConfig
from gdi.errors import UserError

FORMAT = 2

# Fields of format 1 that are in another section of this format, by dotted name. The command line accepts both.
MOVED = {
    **{f"learner.{field.name}": f"data.{field.name}" for field in fields(ExactReplayConfig)},
    **{f"learner.{field.name}": f"optimizer.{field.name}" for field in fields(OptimizerConfig)},
    "learner.workers": "run.workers",
    "network.reward_shapes": "learner.reward_shapes",
    "network.reward_scales": "learner.reward_scales",
}
# Fields that some files of format 1 lack, with the value that applies to those runs.
LATE_FIELDS = {"run": {"precision": "float32"}}


def upgrade(data: Any) -> Any:
    """Convert the parsed JSON of any known format to the current format.

    Unknown fields stay, because the reader reports them.
    """
    found = data.get("format", 1) if isinstance(data, dict) else FORMAT
    if found == FORMAT:
        return data
    if isinstance(found, int) and found > FORMAT:
        raise UserError(f"config.json has format {found}, and this version of gdi reads up to {FORMAT}: update gdi.")
    if found != 1:
        raise UserError(f"config.json has format {found!r}, which is none: the file is damaged.")
    return _from_format_1(data)


def _from_format_1(data: dict[str, Any]) -> dict[str, Any]:
    old = {name: dict(section) if isinstance(section, dict) else section for name, section in data.items()}
    for name, late in LATE_FIELDS.items():
        if isinstance(old.get(name), dict):
            old[name] = {**late, **old[name]}
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
