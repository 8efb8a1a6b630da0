"""The result files: tidy, sorted CSV, one per agent, always rewritten completely and renamed.

``AGENT.csv`` has one row per evaluation. ``AGENT-lambda.csv`` has the controller's choices and the learner's health.
``AGENT.json`` has the settings of all these rows.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gdi.config import GDISpace
from gdi.config.upgrade import upgrade
from gdi.errors import UserError
from gdi.index_space import make_index_space
from gdi.sweep.files import write_whole
from gdi.sweep.record import first_difference

Row = dict[str, str]
Settings = dict[str, Any]
RunOf = tuple[str, str, int, int]  # agent, game, seed, training steps
EVALUATION_COLUMNS = (
    "agent", "game", "seed", "steps", "mean", "min", "max", "episodes", "seconds", "training_steps",
)  # fmt: skip
HEALTH_COLUMNS = (
    "entropy", "ratio_mean", "ratio_clip_fraction", "advantage_scale", "value_mean", "value_target_mean",
    "parameter_lag_updates", "skipped_updates",
)  # fmt: skip
# Every agent of this sweep has the index space of GDI.
SPACE = make_index_space(GDISpace())
LAMBDA_COLUMNS = (
    "agent", "game", "seed", "steps",
    *(f"best_{axis}" for axis in SPACE.names),  # the center of the block that evaluation would choose
    *(f"mean_{axis}" for axis in SPACE.names),  # the mean of the controller's proposals for training
    *(f"top_probability_{axis}" for axis in SPACE.names),
    *HEALTH_COLUMNS,
)  # fmt: skip


def evaluation_row(run: RunOf, steps: int, seconds: float, returns: Mapping[str, Any], episodes: int) -> Row:
    """Return the row of one evaluation; ``returns`` has the mean, min and max over its episodes."""
    agent, game, seed, training_steps = run
    return {
        "agent": agent,
        "game": game,
        "seed": str(seed),
        "steps": str(steps),
        **{name: f"{returns[name]:.8g}" for name in ("mean", "min", "max")},
        "episodes": str(episodes),
        "seconds": f"{seconds:.1f}",
        "training_steps": str(training_steps),
    }


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return all rows, or none without a file; other columns than ours raise UserError."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != tuple(columns):
            raise UserError(
                f"{path} has other columns than {', '.join(columns)}: it is not a file of this benchmark. Move it."
            )
        rows = list(reader)
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values() or not (row["seed"].isdecimal() and row["steps"].isdecimal()):
            raise UserError(f"{path}, line {number}, is incomplete: fix or delete it.")
    return rows


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=_order))
    write_whole(path, text.getvalue())


def write_settings(path: Path, settings: Settings) -> None:
    write_whole(path, json.dumps(settings, indent=2) + "\n")


def read_settings(path: Path) -> Settings | None:
    """Return the settings, or None without a file.

    Settings of an earlier gdi format are upgraded, so that they are comparable.
    """
    if not path.exists():
        return None
    try:
        settings: Settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    return upgrade(settings) if "index_space" in settings else settings


def _order(row: Row) -> tuple[str, int, int]:
    return row["game"], int(row["seed"]), int(row["steps"])


def run_of(row: Row) -> tuple[str, int]:
    return row["game"], int(row["seed"])


def merge(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Merge rows; a run that both have is taken completely from ``new``, so no row is lost or duplicated."""
    new = list(new)
    again = {run_of(row) for row in new}
    return sorted([*(row for row in old if run_of(row) not in again), *new], key=_order)


def files_of(results: Path, agent: str) -> tuple[Path, Path, Path]:
    """Return the paths of an agent's evaluations, its λ and health, and its settings."""
    return results / f"{agent}.csv", results / f"{agent}-lambda.csv", results / f"{agent}.json"


def shared_settings(settings: Settings) -> Settings:
    """Return the settings without game and seed, which all runs of an agent share."""
    env = {name: value for name, value in settings["env"].items() if name != "id"}
    return {**{name: value for name, value in settings.items() if name != "seed"}, "env": env}


def check_settings(path: Path, settings: Settings) -> None:
    """Raise UserError if the settings file of an agent has other settings."""
    stored = read_settings(path)
    if stored is not None and (found := first_difference(stored, settings)) is not None:
        name, before, now = found
        raise UserError(
            f"{path}: {name} was {before!r} and is now {now!r}: results are not mixed. Move the old results away, or "
            "pass another --results."
        )
