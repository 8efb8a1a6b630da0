"""Reading of a run's ``episodes.csv``: every finished training episode with its exploration setting (λ)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
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


def read_episodes(path: Path, most_steps: float = math.inf) -> Episodes:
    """Return the episodes of a run. A line that is incomplete or out of order is left out and counted.

    ``most_steps`` are the steps of the whole run. A line beyond them has two numbers run into one.
    """
    lines = complete_lines(path)
    if not lines:
        return Episodes()
    header = lines[0].decode("utf-8", errors="replace").split(",")
    names = header[len(BEFORE_INDEX) : -len(AFTER_INDEX)]
    if (*header[: len(BEFORE_INDEX)], *header[-len(AFTER_INDEX) :]) != (*BEFORE_INDEX, *AFTER_INDEX):
        return Episodes(left_out=len(lines))
    found = (_numbers(line, len(header)) for line in lines[1:])
    rows = [row for row in found if row is not None and row[0] <= most_steps]
    rows = [rows[place] for place in in_order([row[0] for row in rows])]
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(header)).T
    index = dict(zip(names, columns[len(BEFORE_INDEX) : -len(AFTER_INDEX)], strict=True))
    episode_return, length_steps, _ = columns[-len(AFTER_INDEX) :]
    return Episodes(columns[0], index, episode_return, length_steps, len(lines) - 1 - len(rows))


def in_order(steps: Sequence[float]) -> list[int]:
    """Return the places of the longest part that never goes back, so that one wrong number costs one line."""
    if all(steps[i] <= steps[i + 1] for i in range(len(steps) - 1)):
        return list(range(len(steps)))
    ends: list[float] = []  # the smallest last number of a part of each length
    end_places: list[int] = []
    before: list[int] = []
    for place, number in enumerate(steps):
        length = bisect_right(ends, number)
        before.append(end_places[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        end_places[length : length + 1] = [place]
    out = []
    place = end_places[-1]
    while place >= 0:
        out.append(place)
        place = before[place]
    return out[::-1]


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
