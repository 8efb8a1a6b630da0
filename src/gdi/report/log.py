"""Reading of a run's ``metrics.jsonl``, whatever happened to it.

A log may still grow, end in the middle of a line, or have been rewound by a resume. It may be damaged as well. A line
that is incomplete or contradicts itself is left out and counted, so that no number is shown that the run did not write.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gdi.types import Array

Line = Mapping[str, Any]
COUNTERS = ("steps", "frames", "updates")
# Numbers above this are no counts, and do not fit into a float exactly.
LARGEST = 2**53
NAME = re.compile(r"[\w ./:+-]+")
# Probabilities are logged with five digits, so those of many blocks may sum to a little more or less than 1.
SUM_TOLERANCE = 0.02


@dataclass(frozen=True)
class Log:
    """The lines of a log in the order of their steps, without repetitions."""

    train: tuple[Line, ...] = ()
    evaluations: tuple[Line, ...] = ()
    left_out: int = 0


def read_log(path: Path) -> Log:
    """Return the log of a run, or an empty one if there is no file yet."""
    return parse_log(complete_lines(path))


def complete_lines(path: Path) -> list[bytes]:
    """Return the lines that end with a newline. The last one may still be in the making."""
    try:
        content = path.read_bytes()
    except OSError:
        return []
    return content[: content.rfind(b"\n") + 1].splitlines()


def parse_log(lines: Iterable[bytes]) -> Log:
    """Return the log that these lines make; the last of two lines for the same steps counts."""
    kept: dict[str, list[Line]] = {"train": [], "evaluation": []}
    left_out = 0
    for text in lines:
        line = parse_line(text)
        if line is None:
            left_out += 1
            continue
        of_kind = kept[line["kind"]]
        while of_kind and of_kind[-1]["steps"] >= line["steps"]:
            of_kind.pop()
        of_kind.append(line)
    return Log(tuple(kept["train"]), tuple(kept["evaluation"]), left_out)


def parse_line(text: bytes) -> Line | None:
    """Return one line of the log, or None if it is damaged."""
    try:
        line = json.loads(text.decode("utf-8"), object_pairs_hook=_checked_object)
    # A line may nest too deeply for the parser.
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or line.get("kind") not in ("train", "evaluation"):
        return None
    counters = [line.get(name) for name in COUNTERS]
    if not all(type(count) is int and 0 <= count < LARGEST for count in counters):
        return None
    steps, frames = line["steps"], line["frames"]
    if steps and frames % steps:  # every step has the same number of frames
        return None
    if line["kind"] == "evaluation" and not is_number(line.get("mean")):
        return None
    clock = line.get("clock")
    if not isinstance(clock, dict) or not is_number(clock.get("seconds")):
        return None
    return line if all(map(_is_consistent, _beliefs(line))) else None


def _checked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object with a repeated key, which two mixed lines have, or with a key that is no name."""
    found = dict(pairs)
    if len(found) != len(pairs) or not all(map(NAME.fullmatch, found)):
        raise ValueError("damaged keys")
    return found


def is_number(value: object) -> bool:
    """Return whether a value of a line is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def number(value: object) -> float:
    """Return a value of a line as a float, or NaN if it is not a finite number."""
    return float(value) if is_number(value) else math.nan  # type: ignore[arg-type]


def series(lines: Sequence[Line], name: str) -> Array:
    """Return a metric over the lines, ``[lines]``, with NaN where it was not logged."""
    return np.array([number(line.get(name)) for line in lines], dtype=np.float64)


def clock_series(lines: Sequence[Line], name: str) -> Array:
    """Return a timing over the lines, ``[lines]``."""
    return np.array([number(line["clock"].get(name)) for line in lines], dtype=np.float64)


@dataclass(frozen=True)
class AxisBelief:
    """The controller's belief about one axis over the run."""

    steps: Array  # [lines]
    value: Array  # [lines, blocks]
    count: Array  # [lines, blocks]
    probability: Array  # [lines, blocks]

    @property
    def best_block(self) -> Array:
        """Return the block that evaluation would choose, ``[lines]``."""
        return np.asarray(self.value.argmax(axis=1))


def axis_belief(lines: Sequence[Line], axis: str, num_blocks: int) -> AxisBelief | None:
    """Return the belief about an axis from the lines that have it, or None if none has."""
    found = [line for line in lines if len(_block_list(line, axis, "probability")) == num_blocks]
    if not found:
        return None
    columns = (
        np.array([_block_list(line, axis, name) for line in found], dtype=np.float64)
        for name in ("value", "count", "probability")
    )
    return AxisBelief(series(found, "steps"), *columns)


def _beliefs(line: Line) -> list[tuple[Line, str]]:
    names = [name.split("/")[1] for name in line if name.startswith("controller/") and name.endswith("/block_value")]
    names += [n.split("/")[1] for n in line if n.startswith("controller/") and n.endswith("/block_probability")]
    return [(line, name) for name in dict.fromkeys(names)]


def _block_list(line: Line, axis: str, name: str) -> list[float]:
    found = line.get(f"controller/{axis}/block_{name}")
    return found if isinstance(found, list) else []


def _is_consistent(belief: tuple[Line, str]) -> bool:
    """Return whether the lists about an axis have one length, and agree with the numbers beside them."""
    line, axis = belief
    value, count, probability = (_block_list(line, axis, name) for name in ("value", "count", "probability"))
    if not 0 < len(value) == len(count) == len(probability):
        return False
    if not all(map(is_number, (*value, *count, *probability))):
        return False
    if min(probability) < 0 or abs(sum(probability) - 1) > SUM_TOLERANCE:
        return False
    top = number(line.get(f"controller/{axis}/top_block_probability"))
    return abs(max(probability) - top) < 1e-4
