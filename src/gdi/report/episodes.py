"""Reading of a run's ``episodes.csv``: every finished training episode with its exploration setting (λ)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gdi.report.log import complete_lines
from gdi.runtime.run_log import AFTER_INDEX, BEFORE_INDEX
from gdi.types import Array


@dataclass(frozen=True)
class Episodes:
    """The training episodes in the order of their steps."""

    steps: Array = field(default_factory=lambda: np.empty(0))  # [episodes]
    index: Mapping[str, Array] = field(default_factory=dict)  # by component of λ, [episodes]
    episode_return: Array = field(default_factory=lambda: np.empty(0))  # [episodes]
    length_steps: Array = field(default_factory=lambda: np.empty(0))  # [episodes]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.steps)


def read_episodes(path: Path) -> Episodes:
    """Return the episodes of a run; a line that is incomplete or goes back in steps is left out and counted."""
    lines = complete_lines(path)
    if not lines:
        return Episodes()
    header = lines[0].decode("utf-8", errors="replace").split(",")
    names = header[len(BEFORE_INDEX) : -len(AFTER_INDEX)]
    if (*header[: len(BEFORE_INDEX)], *header[-len(AFTER_INDEX) :]) != (*BEFORE_INDEX, *AFTER_INDEX):
        return Episodes(left_out=len(lines))
    rows: list[list[float]] = []
    left_out = 0
    for line in lines[1:]:
        row = _numbers(line, len(header))
        if row is None or (rows and row[0] < rows[-1][0]):
            left_out += 1
        else:
            rows.append(row)
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(header)).T
    index = dict(zip(names, columns[len(BEFORE_INDEX) : -len(AFTER_INDEX)], strict=True))
    episode_return, length_steps, _ = columns[-len(AFTER_INDEX) :]
    return Episodes(columns[0], index, episode_return, length_steps, left_out)


def _numbers(line: bytes, count: int) -> list[float] | None:
    """Return the numbers of a row, or None if it is damaged."""
    try:
        row = [float(cell) for cell in line.split(b",")]
    except ValueError:
        return None
    if len(row) != count or not all(map(math.isfinite, row)):
        return None
    steps, env, *_, length, truncated = row
    whole = all(number >= 0 and number.is_integer() for number in (steps, env, length))
    return row if whole and truncated in (0.0, 1.0) else None
