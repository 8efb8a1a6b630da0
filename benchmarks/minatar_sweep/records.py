"""The result files: tidy, sorted CSV, one per agent, always rewritten completely and renamed.

``AGENT.csv`` has one row per evaluation. ``AGENT-lambda.csv`` has the controller's choices and the learner's health.
``AGENT.json`` has the settings of all these rows. A run folder holds the same files for one run.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.minatar_sweep.jobs import CONFIG, EVALUATIONS, LAMBDA, Job, Settings, first_difference, shared_settings
from gdi.config import GDISpace
from gdi.config.upgrade import upgrade
from gdi.errors import UserError
from gdi.index_space import make_index_space

Row = dict[str, str]
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


def evaluation_row(job: Job, steps: int, seconds: float, returns: Mapping[str, float], episodes: int) -> Row:
    """Return the row of one evaluation; ``returns`` has the mean, min and max over its episodes."""
    return {
        "agent": job.agent.name,
        "game": job.game,
        "seed": str(job.seed),
        "steps": str(steps),
        **{name: f"{returns[name]:.8g}" for name in ("mean", "min", "max")},
        "episodes": str(episodes),
        "seconds": f"{seconds:.1f}",
        "training_steps": str(job.steps),
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
    with _AtomicFile(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        in_order = sorted(rows, key=_order)
        writer.writerows(in_order)


def write_settings(path: Path, settings: Settings) -> None:
    with _AtomicFile(path) as file:
        file.write(json.dumps(settings, indent=2) + "\n")


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


class _AtomicFile:
    """A text file that atomically replaces the file of its name."""

    def __init__(self, path: Path) -> None:
        self._path, self._part = path, path.with_name(f".{path.name}.part")

    def __enter__(self) -> Any:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._part.open("w", encoding="utf-8", newline="")
        return self._file

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if kind is None:
            self._part.replace(self._path)
        else:
            self._part.unlink()


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


def is_finished(job: Job, runs: Path) -> bool:
    return (job.folder(runs) / EVALUATIONS).exists()


def finished_runs(results: Path, agent: str) -> set[tuple[str, int]]:
    """Return (game, seed) of the runs in an agent's CSV file."""
    return {run_of(row) for row in read_rows(files_of(results, agent)[0], EVALUATION_COLUMNS)}


def check(job: Job, runs: Path, results: Path) -> None:
    """Raise UserError if existing results of this job, or of its agent, have other settings."""
    settings = job.settings()
    evaluations, _, shared = files_of(results, job.agent.name)
    stored = read_settings(shared)
    if stored is None and evaluations.exists():
        raise UserError(f"{evaluations} has no {shared.name} next to it with its settings: move it away.")
    own = job.folder(runs) / CONFIG
    for path, old, new in ((shared, stored, shared_settings(settings)), (own, read_settings(own), settings)):
        if old is not None and (found := first_difference(old, new)):
            name, before, now = found
            raise UserError(
                f"{path}: {name} was {before!r} and is now {now!r}: results are not mixed. Use the same settings as "
                "before, move the old results away, or pass other folders with --runs and --results."
            )


def publish(jobs: Iterable[Job], runs: Path, results: Path) -> None:
    """Rewrite the result files of these jobs' agents from the finished runs and the existing rows."""
    by_agent: dict[str, list[Job]] = {}
    for job in jobs:
        if is_finished(job, runs):
            by_agent.setdefault(job.agent.name, []).append(job)
    for agent, finished in by_agent.items():
        evaluations, lambdas, shared = files_of(results, agent)
        # Write settings first, so that no rows exist without them.
        write_settings(shared, shared_settings(finished[0].settings()))
        # Write evaluations last, because they mark a run as published.
        for path, name, columns in ((lambdas, LAMBDA, LAMBDA_COLUMNS), (evaluations, EVALUATIONS, EVALUATION_COLUMNS)):
            new = [row for job in finished for row in read_rows(job.folder(runs) / name, columns)]
            if new:
                write_rows(path, columns, merge(read_rows(path, columns), new))
