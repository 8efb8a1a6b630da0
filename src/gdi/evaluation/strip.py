"""A strip under each frame of a video: λ in the controller's distributions, and entropy and value over the episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gdi.evaluation.video import BLOCK_PIXELS, drawable
from gdi.types import Array

CELL_PIXELS, TRACE_PIXELS, EDGE = 88, 72, 8  # heights of a distribution and of a curve, and the border around each
TITLE_PIXELS = 20
HEIGHT = CELL_PIXELS + 2 * TRACE_PIXELS + -(CELL_PIXELS + 2 * TRACE_PIXELS) % BLOCK_PIXELS
STEPS_SHOWN = 300
WHITE, GRAY, DARK = (235, 235, 235), (150, 150, 150), (48, 48, 48)
# Hues of Okabe and Ito.
SKY, ORANGE, GREEN, PURPLE = (86, 180, 233), (230, 159, 0), (0, 190, 140), (204, 121, 167)


@dataclass(frozen=True)
class Component:
    """One component of λ in an episode; ``place`` is where its value lies on its axis, from 0 to 1."""

    label: str
    value: float
    place: float = 0.0
    ends: tuple[float, float] = (0.0, 0.0)  # the values at the ends of the axis
    probability: Sequence[float] = ()  # of the next proposal, per block; empty if the controller does not search it


@dataclass(frozen=True)
class Outlook:
    """The agent's view of its latest step; a number is NaN before the first step, or if the algorithm has none."""

    step: int  # in the episode
    components: tuple[Component, ...]
    entropy: float  # of π_{θ_λ}(·|s), in nats
    highest_entropy: float  # that of the uniform policy
    value: float  # V(s)


class Strip:
    """The strip of one video. It remembers the entropy and the value of the newest steps of an episode."""

    height = HEIGHT

    def __init__(self, outlook: Callable[[], Outlook]) -> None:
        self._outlook = outlook
        self._step = -1
        self._curves: list[tuple[float, float]] = []
        self._drawn: Array | None = None

    def under(self, frame: Array) -> Array:
        """Return the frame, [height, width, 3], with the strip of the agent's latest step below it."""
        now = self._outlook()
        if now.step != self._step or self._drawn is None:
            if now.step < self._step:
                self._curves = []
            if np.isfinite(now.entropy):
                self._curves = [*self._curves[1 - STEPS_SHOWN :], (now.entropy, now.value)]
            self._drawn, self._step = draw_strip(now, self._curves, frame.shape[1]), now.step
        return np.concatenate([frame, self._drawn])


def draw_strip(now: Outlook, curves: Sequence[tuple[float, float]], width: int) -> Array:
    """Draw the strip, [HEIGHT, width, 3]; ``curves`` has the entropy and value of each step to show."""
    canvas = np.zeros((HEIGHT, width, 3), np.uint8)
    cell = width // max(1, len(now.components))
    for number, component in enumerate(now.components):
        draw_component(canvas[:CELL_PIXELS, number * cell : (number + 1) * cell], component)
    entropy, value = np.array(curves, np.float64).reshape(-1, 2).T
    below = canvas[CELL_PIXELS:]
    draw_curve(below[:TRACE_PIXELS], "entropy", entropy, (0.0, now.highest_entropy), GREEN)
    draw_curve(below[TRACE_PIXELS : 2 * TRACE_PIXELS], "value V", value, value_range(value), PURPLE)
    return canvas


def value_range(value: Array) -> tuple[float, float]:
    """Return the range of the finite values, widened to 1 at least, so that noise does not fill the curve."""
    known = value[np.isfinite(value)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    missing = max(0.0, 1.0 - (high - low)) / 2
    return low - missing, high + missing


def draw_component(area: Array, component: Component) -> None:
    """Draw a component's probabilities as bars, and its value as a mark on the axis below them."""
    import cv2

    text(area, f"{component.label} = {component.value:.3g}", WHITE)
    left, right, top, bottom = EDGE, area.shape[1] - EDGE, TITLE_PIXELS + 4, area.shape[0] - 2 * EDGE
    cv2.line(area, (left, bottom), (right, bottom), GRAY, 1)
    if not len(component.probability):
        text(area, "not searched", GRAY, TITLE_PIXELS)
        return
    text(area, "{:.3g} to {:.3g}".format(*component.ends), GRAY, right_aligned=True)
    edges = np.linspace(left, right, len(component.probability) + 1).round().astype(int)
    highest = max(component.probability)
    for begin, end, p in zip(edges, edges[1:], component.probability, strict=False):
        height = round((bottom - top) * p / highest)
        cv2.rectangle(area, (int(begin), bottom - height), (max(int(begin), int(end) - 2), bottom), SKY, cv2.FILLED)
    x = round(left + component.place * (right - left))
    cv2.line(area, (x, top), (x, bottom), ORANGE, 1)
    mark = np.array([[x, bottom + 2], [x - 5, bottom + 10], [x + 5, bottom + 10]], np.int32)
    cv2.fillPoly(area, [mark], ORANGE)


def draw_curve(area: Array, name: str, values: Array, limits: tuple[float, float], color: tuple[int, int, int]) -> None:
    """Draw the newest values as a curve between two limits, with its latest value as text."""
    import cv2

    known = np.isfinite(values)
    latest = f"{values[-1]:.2f}" if known.any() and known[-1] else "-"
    text(area, f"{name} {latest}", color)
    low, high = limits
    left, right, top, bottom = EDGE, area.shape[1] - EDGE, TITLE_PIXELS + 4, area.shape[0] - EDGE
    for y in (top, bottom):
        cv2.line(area, (left, y), (right, y), DARK, 1)
    text(area, f"{low:.3g} to {high:.3g}", GRAY, right_aligned=True)
    if known.sum() < 2:
        return
    x = np.linspace(left, left + (right - left) * len(values) / STEPS_SHOWN, len(values))[known]
    y = bottom - (values[known] - low) / (high - low) * (bottom - top)
    cv2.polylines(area, [np.stack([x, y], -1).round().astype(np.int32)], False, color, 1, cv2.LINE_AA)


def text(area: Array, words: str, color: tuple[int, int, int], top: int = 0, *, right_aligned: bool = False) -> None:
    import cv2

    words, font, scale = drawable(words), cv2.FONT_HERSHEY_SIMPLEX, 0.45
    (width, _), _ = cv2.getTextSize(words, font, scale, 1)
    x = area.shape[1] - EDGE - width if right_aligned else EDGE
    cv2.putText(area, words, (x, top + 16), font, scale, color, 1, cv2.LINE_AA)
