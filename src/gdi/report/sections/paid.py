"""Which λ paid: the return of training episodes against each component of λ, by thirds of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gdi.index_space import Axis
from gdi.report.document import Figure, Menu, Section, View, numbers
from gdi.report.material import Material, run_label
from gdi.report.runs import Run
from gdi.report.sections.control import value_axis
from gdi.scores.style import BLUE, ORANGE, VERMILION
from gdi.types import Array

THIRDS = (("first third", ORANGE, "dot"), ("second third", BLUE, "dash"), ("last third", VERMILION, "solid"))
MOST_RUNS = 12
BINS = 12
FEWEST_PER_BIN = 5


def paid(material: Material) -> Section | None:
    """Return the figure, for the runs whose controller searches an axis and whose episodes are known."""
    runs = [run for run in material.runs if len(run.episodes) and run.settings.axes][:MOST_RUNS]
    if not runs:
        return None
    by_run = {str(number): run for number, run in enumerate(runs)}
    labels = {axis.name: run.settings.label_of(axis.name) for run in runs for axis in run.settings.axes}
    views: dict[tuple[str, ...], View] = {
        (key, axis.name): View(
            tuple(_traces(run, axis)),
            {
                "xaxis": value_axis(axis, run.settings.label_of(axis.name)),
                "yaxis": {"title": {"text": "mean return"}},
            },
        )
        for key, run in by_run.items()
        for axis in run.settings.axes
        if axis.name in run.episodes.index
    }
    menus = (
        Menu("run", {key: run_label(material, run) for key, run in by_run.items()}),
        Menu("component of λ", labels),
    )
    caption = (
        f"Mean return of the training episodes whose λ lies in each of {BINS} ranges, with 1.96 standard errors. "
        f"Ranges with fewer than {FEWEST_PER_BIN} episodes are left out. Episodes that end early are over-represented "
        "at the start of each third."
    )
    return Section("paid", "Which λ paid", (Figure("paid", caption, views, menus, height=400),))


def _traces(run: Run, axis: Axis) -> Iterator[dict[str, Any]]:
    episodes = run.episodes
    part = np.minimum((3 * episodes.steps / max(run.steps, episodes.steps[-1], 1)).astype(int), 2)
    coordinates = np.array([axis.to_coordinate(value) for value in episodes.index[axis.name]])
    for number, (name, color, dash) in enumerate(THIRDS):
        own = part == number
        centers, means, errors = binned(axis, coordinates[own], episodes.episode_return[own])
        if centers.size:
            yield {
                "x": numbers(centers),
                "y": numbers(means),
                "error_y": {"type": "data", "array": numbers(1.96 * errors), "thickness": 1.2},
                "customdata": numbers([axis.to_value(float(x)) for x in centers], 3),
                "hovertemplate": "%{customdata}<br>mean return %{y}<extra></extra>",
                "mode": "lines+markers",
                "name": name,
                "line": {"color": color, "dash": dash, "width": 2},
                "meta": {"x": "coordinate", "y": "mean return"},
            }


def binned(axis: Axis, coordinates: Array, returns: Array) -> tuple[Array, Array, Array]:
    """Return the centers of the ranges with enough episodes, their mean returns and the standard errors."""
    width = (axis.high - axis.low) / BINS
    place = np.clip(((coordinates - axis.low) / width).astype(int), 0, BINS - 1)
    kept = [number for number in range(BINS) if (place == number).sum() >= FEWEST_PER_BIN]
    centers = np.array([axis.low + (number + 0.5) * width for number in kept])
    inside = [returns[place == number] for number in kept]
    means = np.array([values.mean() for values in inside])
    errors = np.array([values.std(ddof=1) / np.sqrt(len(values)) for values in inside])
    return centers, means, errors
