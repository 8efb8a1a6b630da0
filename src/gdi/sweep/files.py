"""The files of a sweep folder, each written whole under another name and renamed."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gdi.runtime.storage import storage_error
from gdi.sweep.holder import Holder, is_label_of_dead

PLAN, RESULTS, EVALUATIONS, SCORES, FAILURES = (
    "plan.toml",
    "results.csv",
    "evaluations.csv",
    "scores.csv",
    "failures.csv",
)
CLAIMS, LOGS, FAILED, FIGURES, SPEEDS = "claims", "logs", "failed", "figures", "speeds.json"
Row = dict[str, str]


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once. Processes that write it at the same time do not meet; a full disk changes nothing."""
    part = path.with_name(f".{path.name}.{Holder.me().label}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path.parent, error) from None


def remove_parts(folder: Path) -> None:
    """Remove the unfinished files of processes that were killed while they wrote into the folder."""
    for part in folder.glob(".*.part"):
        _, label, *_ = part.name.rsplit(".", 3)
        if is_label_of_dead(label):
            part.unlink(missing_ok=True)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Replace a CSV file at once."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def read_csv(path: Path) -> list[Row]:
    """Return the rows of a CSV file, or none without one."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_json(path: Path) -> Mapping[str, Any]:
    """Return the object in a file, or an empty one if there is none that can be read."""
    with suppress(OSError, ValueError):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return content
    return {}
