"""What E did, as text: one strip per component of λ, over the run from left to right.

The height of a character is the place on the axis, from ▁ at its low end to █ at its high end. Its color is how sure E
is there. Beside it stand the probabilities of all blocks now.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.style import Style
from rich.table import Table
from rich.text import Text

from gdi.index_space import Axis
from gdi.report.episodes import Episodes
from gdi.report.log import AxisBelief, Line, axis_belief, series
from gdi.types import Array

BARS = "▁▂▃▄▅▆▇█"
# From unsure to sure, in colors of the Cividis map that are readable on black and on white.
SURENESS = ("#5f6f8f", "#7c8285", "#9a9467", "#b9a44c", "#d7b637")
MOST_BLOCKS = 24  # characters for the probabilities of an axis
LABEL, NOW = 6, 22  # least widths of the columns around the strips


@dataclass(frozen=True)
class Strip:
    """The history of one component of λ."""

    label: str
    now: str
    places: Array  # [lines] from 0 at the low end of the axis to 1 at its high end; NaN if unknown
    sureness: Array  # [lines] from 0 for no preference to 1 for certainty; NaN if E does not choose
    probability: Array  # [blocks]; empty if E does not choose


def belief_strip(axis: Axis, label: str, belief: AxisBelief) -> Strip:
    """Return the strip of an axis that E searches: its best block, and how sure E is of its favorite block."""
    blocks = axis.num_blocks
    best = belief.best_block
    top = belief.probability.max(axis=1)
    value = axis.to_value(axis.low + (int(best[-1]) + 0.5) * axis.block_width)
    places = best / (blocks - 1) if blocks > 1 else np.zeros(len(best))
    sureness = (top * blocks - 1) / max(1, blocks - 1)
    now = f"{value:.3g}, sure {sureness[-1]:.0%}"
    return Strip(label, now, places, sureness, belief.probability[-1])


def strips_of(
    axes: Sequence[Axis], labels: Mapping[str, str], lines: Sequence[Line], played: Mapping[str, Array]
) -> list[Strip]:
    """Return a strip for each component of λ that E searches or that a rule changes.

    ``played`` has the mean of each component over the episodes before each line, [lines].
    """
    beliefs = {axis.name: (axis, axis_belief(lines, axis.name, axis.num_blocks)) for axis in axes}
    strips = []
    for name, values in played.items():
        axis, belief = beliefs.get(name, (None, None))
        label = labels.get(name, name)
        strip = played_strip(label, values) if axis is None or belief is None else belief_strip(axis, label, belief)
        if strip is not None:
            strips.append(strip)
    return strips


def played_means(lines: Sequence[Line], episodes: Episodes) -> dict[str, Array]:
    """Return the mean of each component of λ over the episodes between two lines, [lines]; NaN if none ended."""
    ends = series(lines, "steps")
    line = np.searchsorted(ends, episodes.steps)
    known = line < len(ends)
    counts = np.bincount(line[known], minlength=len(ends))
    return {
        name: np.where(
            counts > 0, np.bincount(line[known], values[known], minlength=len(ends)) / np.maximum(counts, 1), np.nan
        )
        for name, values in episodes.index.items()
    }


def played_strip(label: str, values: Array) -> Strip | None:
    """Return the strip of a component that follows a rule, from its mean per line; None if it never changed."""
    known = values[np.isfinite(values)]
    if not known.size or np.ptp(known) <= 1e-6 * max(1.0, abs(float(known[0]))):
        return None
    places = (values - known.min()) / np.ptp(known)
    now = f"now {known[-1]:.3g}, range {known.min():.3g} to {known.max():.3g}"
    return Strip(label, now, places, np.full(len(values), np.nan), np.empty(0))


def bars(places: Array) -> str:
    """Return one character per place in [0, 1], and a space for NaN."""
    return "".join(
        " " if np.isnan(place) else BARS[min(len(BARS) - 1, int(place * len(BARS)))] for place in places.tolist()
    )


def fitted(values: Array, width: int) -> Array:
    """Return ``width`` values: the last one of each equal part, or the same one again if there are fewer."""
    ends = np.ceil(np.linspace(0, len(values), width + 1)[1:]).astype(int) - 1
    return np.asarray(values[ends])


def pooled(probability: Array, width: int) -> Array:
    """Return at most ``width`` probabilities, each the sum over neighboring blocks."""
    if len(probability) <= width:
        return probability
    begins = np.linspace(0, len(probability), width + 1)[:-1].round().astype(int)
    return np.asarray(np.add.reduceat(probability, begins))


def strip_text(strip: Strip, width: int) -> Text:
    """Return the strip in color."""
    text = Text(no_wrap=True)
    for bar, sure in zip(bars(fitted(strip.places, width)), fitted(strip.sureness, width).tolist(), strict=True):
        text.append(bar, None if math.isnan(sure) else Style(color=sureness_color(sure)))
    return text


def sureness_color(sure: float) -> str:
    """Return the color of a sureness from 0 to 1. Its root decides, because E is rarely sure of one of many blocks."""
    return SURENESS[min(len(SURENESS) - 1, int(math.sqrt(max(0.0, sure)) * len(SURENESS)))]


def probability_text(probability: Array, width: int) -> Text:
    """Return the probabilities as bars, the highest of which is full."""
    if not probability.size:
        return Text()
    parts = pooled(probability, width)
    return Text(bars(parts / parts.max()), no_wrap=True)


def strips_table(strips: Sequence[Strip], width: int) -> Table:
    """Return all strips as a table of at most ``width`` characters."""
    gaps = 3 * 2
    searched = [len(strip.probability) for strip in strips if strip.probability.size]
    longest = max((len(strip.now) for strip in strips), default=0)
    now = max(NOW, min(longest, width // 2 - LABEL))
    free = width - LABEL - now - gaps
    blocks = max(1, min(MOST_BLOCKS, max(searched, default=0), free // 3))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", width=LABEL, justify="right")
    table.add_column(width=free - blocks)
    table.add_column(width=blocks)
    table.add_column(width=now, no_wrap=True)
    for strip in strips:
        over_time = strip_text(strip, free - blocks)
        table.add_row(strip.label, over_time, probability_text(strip.probability, blocks), strip.now)
    return table


def curve_lines(steps: Array, values: Array, width: int, height: int) -> list[str]:
    """Return a curve over the steps as ``height`` lines of bars, the highest first.

    Each column is the mean over equally many steps, or the column before it if there is no value.
    """
    if not len(steps):
        return [""] * height
    column = np.minimum(width - 1, (steps * width / max(1.0, float(steps[-1]))).astype(int))
    counts = np.bincount(column, minlength=width)
    means = np.bincount(column, values, minlength=width) / np.maximum(counts, 1)
    newest = np.maximum.accumulate(np.where(counts > 0, np.arange(width), -1))
    shown = np.where(newest >= 0, means[newest], np.nan)
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    share = (shown - low) / (high - low) if high > low else shown * 0
    eighths = 1 + np.round(share * (8 * height - 1))  # the lowest value is one eighth high
    return [bars_of_line(eighths / 8 - row) for row in range(height - 1, -1, -1)]


def bars_of_line(heights: Array) -> str:
    """Return one line of a bar chart: nothing at 0 and below, a full bar from 1 on."""
    eighths = np.clip(np.nan_to_num(heights * 8), 0, 8).astype(int).tolist()
    return "".join(BARS[count - 1] if count else " " for count in eighths)
