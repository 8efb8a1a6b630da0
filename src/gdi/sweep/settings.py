"""A plan's settings: their names, whom they are for, and the words of ``gdi train`` that they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gdi.cli.settings import KINDS, RENAMED, SHORT_NAMES, option_name
from gdi.config import SECTIONS
from gdi.errors import UserError, did_you_mean
from gdi.sweep.peer_settings import OWN, check_peer_setting, is_peer
from gdi.sweep.peer_settings import takes as peer_takes
from gdi.sweep.plan import Plan, Value

# Settings of a job that the plan itself says, by their name in ``gdi train``.
SAID_BY_PLAN = ("env", "env.id", "steps", "total_timesteps", "seed")
SINGLE = ("scale", *KINDS)
Settings = dict[str, Value]


def canonical(name: str) -> str:
    """Return the full, current name of a setting: ``optimizer.learning_rate`` for ``lr``."""
    option = option_name(*name.split("."))
    full = {**RENAMED, **SHORT_NAMES}.get(option, option)
    return full.removeprefix("--").replace("-", "_").removesuffix(".kind")


def job_settings(plan: Plan, preset: str, env: str, variant: str, seed: int) -> Settings:
    """Return the settings of a job: the common ones, those of its preset, and those of its variant."""
    own = plan.preset.get(preset)
    found = _those_for(preset, plan.settings)
    if own is not None and own.covers(preset, env, seed):
        found |= _canonical(own.settings)
    return found | (_canonical(plan.variants[variant].settings) if variant else {})


def _canonical(settings: Mapping[str, Value]) -> Settings:
    return {canonical(name): value for name, value in settings.items()}


def _those_for(preset: str, settings: Mapping[str, Value]) -> Settings:
    """Return the common settings that are for this preset: peers have others than our presets."""
    return {name: value for name, value in _canonical(settings).items() if takes(preset, name)}


def takes(preset: str, name: str) -> bool:
    """Return True if a preset has a setting of this full name. Of ours, ``gdi train`` checks more."""
    return peer_takes(preset, name) if is_peer(preset) else not name.startswith(OWN)


def check_settings(plan: Plan) -> None:
    """Raise UserError for a setting that a plan cannot have, or that no job takes."""
    for name in plan.settings:
        _check_setting(name, "settings")
        if not any(takes(preset, canonical(name)) for preset in plan.presets):
            raise UserError(f"settings.{name}: no preset of the plan has this setting: drop it.")
    for section, changes in (("preset", plan.preset), ("variants", plan.variants)):
        for key, change in changes.items():
            names = [key] if section == "preset" else change.presets or plan.presets
            for setting in change.settings:
                _check_setting(setting, f"{section}.{key}")
                _check_taken(setting, f"{section}.{key}", names)


def _check_setting(name: str, where: str) -> None:
    """Raise UserError unless the name is one that a plan may set. ``gdi train`` checks the rest."""
    full = canonical(name)
    if full in SAID_BY_PLAN:
        raise UserError(f"{where}: {name} is not a setting: the plan has envs, steps and seeds.")
    section, dot, _ = full.partition(".")
    if full in SINGLE or (dot and section in (*SECTIONS, OWN.rstrip("."))):
        if full.startswith(OWN):
            check_peer_setting(full, where)
        return
    hint = did_you_mean(section if dot else name, (*SECTIONS, *SINGLE))
    raise UserError(f"{where}: unknown setting {name!r}.{hint} A setting is section.field, as in gdi train --help-all.")


def _check_taken(name: str, where: str, presets: Sequence[str]) -> None:
    """Raise UserError if a preset of a change would ignore its setting."""
    for preset in presets:
        if not takes(preset, canonical(name)):
            raise UserError(f"{where}: {preset} has no setting {name}: add presets to the table, without this one.")


def train_words(settings: Mapping[str, Value]) -> list[str]:
    """Return settings as options of ``gdi train``."""
    return [word for name, value in settings.items() for word in _words(option_name(*name.split(".")), value)]


def _words(option: str, value: Value) -> list[str]:
    if isinstance(value, bool):
        section, _, field = option.rpartition(".")
        return [option if value else f"{section}.no-{field}"]
    if isinstance(value, tuple):
        return [option, *map(_text, value)]
    return [f"{option}={_text(value)}"]


def _text(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
