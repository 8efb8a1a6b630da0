"""The record of a sweep folder: its plan, which may grow, and the settings of its runs, which may not change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gdi.config import config_to_json
from gdi.config.upgrade import upgrade
from gdi.errors import UserError
from gdi.sweep.claim import Claims
from gdi.sweep.estimate import kind_of
from gdi.sweep.files import CLAIMS, PLAN, write_whole
from gdi.sweep.jobs import Job, config_of, difference
from gdi.sweep.peer_settings import peer_config
from gdi.sweep.plan import Plan, read_plan
from gdi.sweep.plan_text import plan_to_toml
from gdi.sweep.status import CONFIG

LOCK = "plan"
# What a folder has whose sweep was killed before it had a plan.
BEGUN = (CLAIMS,)
Settings = Mapping[str, Any]


def stored_plan(folder: Path) -> Plan | None:
    """Return the plan that a folder keeps, or None for a new folder. Any other folder raises UserError."""
    if (folder / PLAN).is_file():
        return read_plan(folder / PLAN)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: give --out a folder.")
    if folder.is_dir() and any(path.name not in BEGUN and not path.name.endswith(".part") for path in folder.iterdir()):
        raise UserError(f"{folder} is no folder of a sweep, and not empty: choose another --out.")
    return None


def check_growth(folder: Path, plan: Plan) -> None:
    """Raise UserError unless each job of the folder's plan is in the new one with the same settings."""
    stored = stored_plan(folder)
    if stored is not None and (found := difference(stored, plan)) is not None:
        raise UserError(
            f"{folder} has another plan: {found}. A plan may grow, and nothing else: use another --out, or the old one."
        )


def store_plan(folder: Path, plan: Plan) -> None:
    """Make a plan the folder's own. Another process may be doing the same with another plan."""
    claims = Claims(folder / CLAIMS)
    claim = claims.acquire(LOCK)
    if claim is None:
        raise UserError(f"{folder}: another process changes the plan just now: try again.")
    try:
        check_growth(folder, plan)
        if stored_plan(folder) != plan:
            write_whole(folder / PLAN, plan_to_toml(plan))
    finally:
        claim.release()


def check_runs(folder: Path, jobs: Sequence[Job]) -> None:
    """Raise UserError if a run in the folder has other settings than its job has now."""
    configs: dict[str, Settings] = {}
    for job in jobs:
        path = job.folder(folder) / CONFIG
        if not path.is_file():
            continue
        now = settings_of(job, configs)
        if (found := first_difference(_stored_settings(path), now)) is not None:
            name, before, after = found
            raise UserError(
                f"{path}: {name} was {before!r} and is now {after!r}. Results are not mixed: use the version of gdi "
                "that began the sweep, or another --out."
            )


def settings_of(job: Job, known: dict[str, Settings]) -> Settings:
    """Return all settings of a job, as its run folder has them. Jobs that differ in the seed share the work."""
    if job.is_peer:
        return peer_config(job.preset, job.env, job.seed, job.steps, job.settings)
    kind = kind_of(job)
    if kind not in known:
        known[kind] = json.loads(config_to_json(replace(config_of(job), seed=0)))
    return {**known[kind], "seed": job.seed}


def _stored_settings(path: Path) -> Settings:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    return upgrade(found) if isinstance(found, dict) and "index_space" in found else found  # type: ignore[no-any-return]


def first_difference(old: Settings, new: Settings, path: str = "") -> tuple[str, Any, Any] | None:
    """Return (dotted name, old value, new value) of the first setting that differs.

    Only settings that both have are compared, so a gdi with one more setting still accepts older results.
    """
    for name, value in new.items():
        if name not in old:
            continue
        if isinstance(value, dict) and isinstance(old[name], dict):
            if found := first_difference(old[name], value, f"{path}{name}."):
                return found
        elif old[name] != value:
            return f"{path}{name}", old[name], value
    return None
