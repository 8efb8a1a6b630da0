"""Reading of a benchmark's committed records: CSV files with one row per evaluation, several runs in each.

A file ``NAME.csv`` has the columns agent, game, seed, steps, mean, min, max, episodes, seconds and training_steps.
Beside it, ``NAME-lambda.csv`` has what the controller chose and the learner's health, and ``NAME.json`` the settings.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gdi.errors import UserError
from gdi.report.log import Line, is_number
from gdi.report.runs import Run, State
from gdi.report.settings import Settings, read_settings

EVALUATION_COLUMNS = (
    "agent", "game", "seed", "steps", "mean", "min", "max", "episodes", "seconds", "training_steps",
)  # fmt: skip
# The columns of health, and their names in a log.
HEALTH = {
    "entropy": "policy/entropy",
    "ratio_mean": "policy/ratio_mean",
    "ratio_clip_fraction": "policy/ratio_clip_fraction",
    "advantage_scale": "policy/advantage_scale",
    "value_mean": "value/mean",
    "value_target_mean": "value/target_mean",
    "parameter_lag_updates": "actor/parameter_lag_updates",
    "skipped_updates": "learner/skipped",
}
BEST, TOP = "best_", "top_probability_"
Key = tuple[str, str, int]  # agent, game, seed


def record_files(folder: Path) -> list[Path]:
    """Return the files of evaluations in a folder."""
    return [path for path in sorted(folder.glob("*.csv")) if _header(path) == EVALUATION_COLUMNS]


def read_records(path: Path) -> list[Run]:
    """Return the runs in one file of evaluations."""
    settings = read_settings(path.with_suffix(".json"))
    evaluations = _by_run(path, _evaluation)
    beside = path.with_name(f"{path.stem}-lambda.csv")
    trained = _by_run(beside, _training) if beside.is_file() else {}
    runs = []
    for key, lines in sorted(evaluations.items()):
        agent, game, seed = key
        total = next(iter(lines))["training_steps"]
        own = replace(settings, env=game, seed=seed, steps=total)
        text = f"recorded, {int(lines[-1]['steps']):,} steps"
        state = State("recorded", text)
        name = f"{agent}, {game}, seed {seed}"
        runs.append(
            Run(path, name, own, state, tuple(trained.get(key, ())), tuple(lines), agent=agent, notes=_notes(settings))
        )
    return runs


def _notes(settings: Settings) -> tuple[str, ...]:
    return (f"{settings.problem}, so the page cannot name its settings.",) if settings.problem else ()


def _header(path: Path) -> tuple[str, ...]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return tuple(next(csv.reader(file), ()))


def _by_run(path: Path, line_of: Any) -> dict[Key, list[Line]]:
    """Return the lines of each run in the order of their steps."""
    found: dict[Key, list[Line]] = {}
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                key = row["agent"], row["game"], int(row["seed"])
                found.setdefault(key, []).append(line_of(row))
            except (KeyError, TypeError, ValueError):
                raise UserError(f"{path}, line {number}, is damaged: fix or delete it.") from None
    for lines in found.values():
        lines.sort(key=lambda line: int(line["steps"]))
    return found


def _evaluation(row: dict[str, str]) -> Line:
    numbers = {name: float(row[name]) for name in ("mean", "min", "max", "seconds")}
    if not all(map(is_number, numbers.values())):
        raise ValueError
    counts = {name: int(row[name]) for name in ("steps", "episodes", "training_steps")}
    return {"kind": "evaluation", **counts, **numbers, "clock": {"seconds": numbers["seconds"]}}


def _training(row: dict[str, str]) -> Line:
    return {"kind": "train", "steps": int(row["steps"]), **dict(_metrics(row)), "clock": {}}


def _metrics(row: dict[str, str]) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a row by their names in a log."""
    for name, cell in row.items():
        if not cell:
            continue
        if name in HEALTH:
            yield HEALTH[name], float(cell)
        elif name.startswith(BEST):
            yield f"controller/{name.removeprefix(BEST)}/best_value", float(cell)
        elif name.startswith(TOP):
            yield f"controller/{name.removeprefix(TOP)}/top_block_probability", float(cell)
