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
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
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
