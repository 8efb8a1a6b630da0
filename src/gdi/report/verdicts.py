"""What E did to one axis, in words: a sentence that claims a move only where the log shows more than noise.

The words rest on the best block of each log line, in the axis's coordinate. The first and the last third of the lines
are compared. A place is steady if half of its lines lie within a quarter of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gdi.index_space import Axis
from gdi.report.log import AxisBelief
from gdi.types import Array

FEWEST_LINES = 9
STEADY = 0.25  # interquartile range of a steady place, as a share of the axis
# The probability near the best block must exceed a uniform one by this share of what is possible.
SURE = 0.1
WIDE = 0.25  # distance of two places that are worth telling apart, as a share of the axis
FEWEST_TURNS = 3
# White noise turns at a third of its lines. Slower turns are oscillations.
MOST_TURNS = 1 / 5

Word = Literal["moved", "stayed", "settled", "oscillated", "undecided", "early"]


@dataclass(frozen=True)
class Verdict:
    """What E did to one axis.

    A move has the values at its ``start`` and ``end``. All other words that name values have the range of the middle
    80% of the lines.
    """

    word: Word
    start: float = 0.0
    end: float = 0.0


def judge_axis(axis: Axis, belief: AxisBelief | None) -> Verdict:
    """Return what E did to an axis."""
    if belief is None or len(belief.steps) < FEWEST_LINES:
        return Verdict("early")
    best = axis.low + (belief.best_block + 0.5) * axis.block_width
    extent = axis.high - axis.low
    third = len(best) // 3
    early, late = best[:third], best[-third:]
    if mean_excess(belief, third) < SURE:
        return Verdict("undecided")
    low, high = np.quantile(best, [0.1, 0.9])
    if high - low >= WIDE * extent and FEWEST_TURNS <= turns(best, low, high) <= MOST_TURNS * len(best):
        return Verdict("oscillated", axis.to_value(float(low)), axis.to_value(float(high)))
    if not is_steady(late, extent):
        return Verdict("undecided")
    if are_apart(early, late, axis.block_width):
        return Verdict("moved", *(axis.to_value(float(np.median(places))) for places in (early, late)))
    low, high = np.quantile(late, [0.1, 0.9])
    word: Word = "stayed" if is_steady(early, extent) else "settled"
    return Verdict(word, axis.to_value(float(low)), axis.to_value(float(high)))


def mean_excess(belief: AxisBelief, newest: int) -> float:
    """Return how far the probability near the best block exceeds a uniform one over the newest lines, 0 to 1.

    Near means the block itself and its two neighbors.
    """
    blocks = belief.probability.shape[1]
    near = np.abs(np.arange(blocks) - belief.best_block[:, None]) <= 1
    mass = (belief.probability * near).sum(axis=1)
    uniform = near.sum(axis=1) / blocks
    room = np.maximum(1 - uniform, 1e-9)
    return float(np.mean(((mass - uniform) / room)[-newest:]))


def is_steady(places: Array, extent: float) -> bool:
    low, high = np.quantile(places, [0.25, 0.75])
    return bool(high - low <= STEADY * extent)


def are_apart(early: Array, late: Array, block_width: float) -> bool:
    """Return whether four fifths of the early places and of the late ones are two ranges without overlap.

    Neighboring blocks count as one place.
    """
    first, last = (np.quantile(places, [0.1, 0.9]) for places in (early, late))
    return bool(last[0] - first[1] > 1.5 * block_width or first[0] - last[1] > 1.5 * block_width)


def turns(best: Array, low: float, high: float) -> int:
    """Count how often the best place goes from the lower third of [low, high] to the upper, or back."""
    side = np.where(best <= low + (high - low) / 3, -1, np.where(best >= high - (high - low) / 3, 1, 0))
    sides = side[side != 0]
    return int((sides[1:] != sides[:-1]).sum())


PHRASES: Mapping[Word, str] = {
    "moved": "moved {label} from {start:.3g} to {end:.3g}",
    "stayed": "kept {label} {place}",
    "settled": "settled on {label} {place}",
    "oscillated": "swung {label} between {start:.3g} and {end:.3g}",
    "undecided": "stayed undecided about {label}",
    "early": "too few log lines to judge {label}",
}


def phrase_of(labels: str, verdict: Verdict) -> str:
    """Return what E did to these components of λ: ``moved 1/τ2 from 32 to 225``."""
    low, high = f"{verdict.start:.3g}", f"{verdict.end:.3g}"
    place = f"near {low}" if low == high else f"between {low} and {high}"
    return PHRASES[verdict.word].format(label=labels, start=verdict.start, end=verdict.end, place=place)


def sentence(labels: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """Return one sentence about all searched axes: ``E moved 1/τ2 from 32 to 225 and stayed undecided about ε.``"""
    by_verdict: dict[Verdict, list[str]] = {}
    for label, verdict in zip(labels, verdicts, strict=True):
        by_verdict.setdefault(verdict, []).append(label)
    early = by_verdict.pop(Verdict("early"), [])
    parts = [phrase_of(listed(names), verdict) for verdict, names in by_verdict.items()]
    said = [f"E {listed(parts)}."] if parts else []
    return " ".join([*said, *([f"The log has too few lines to judge {listed(early)}."] if early else [])])


def listed(words: Sequence[str]) -> str:
    """Join words: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
