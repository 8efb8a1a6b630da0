"""λ of runs whose controller logs no belief: those without E, with a schedule, and benchmark records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gdi.report.document import Block, Figure, Menu, Text, View, numbers, plotly_text
from gdi.report.log import series
from gdi.report.material import Material, run_label, thin
from gdi.report.runs import Run
from gdi.types import Array

MOST_RUNS = 12
MOST_POINTS = 150
WORDS = {
    "fixed": "This run has no E: λ stayed the same.",
    "uniform": "This run has no E: every λ was drawn uniformly, whatever it returned.",
    "schedule": "This run has no E that learns: a schedule moved λ.",
}


def without_beliefs(material: Material, runs: Sequence[Run]) -> Iterator[Block]:
    """Yield what λ was in runs whose controller logs no belief: in words, and as a figure from their episodes."""
    for kind in dict.fromkeys(run.settings.controller for run in runs):
        if kind in WORDS:
            own = [run for run in runs if run.settings.controller == kind]
            yield Text(f"{WORDS[kind]} {_told(material, own)}".strip())
    recorded = [run for run in runs if best_values(run)]
    if recorded:
        yield _best_figure(material, recorded)
    played = [run for run in runs if len(run.episodes) and run.episodes.index][:MOST_RUNS]
    if played:
        yield _episode_figure(material, played)


def _told(material: Material, runs: Sequence[Run]) -> str:
    """Return which runs a sentence is about, if there are others."""
    if len(runs) == len(material.runs):
        return ""
    labels = dict.fromkeys(material.agent_of(run) for run in runs)
    return f"({', '.join(labels)})"


def best_values(run: Run) -> dict[str, Array]:
    """Return the best value per component of λ over a run that only recorded these."""
    names = {name: f"controller/{name}/best_value" for name in run.settings.names}
    found = {name: series(run.train, metric) for name, metric in names.items()}
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def _best_figure(material: Material, runs: Sequence[Run]) -> Figure:
    """Draw the best block of every run of an environment over its steps."""
    labels = {name: run.settings.label_of(name) for run in runs for name in best_values(run)}
    views: dict[tuple[str, ...], View] = {}
    for env in dict.fromkeys(run.env for run in runs):
        for agent in dict.fromkeys(material.agent_of(run) for run in runs if run.env == env):
            own = [run for run in runs if (run.env, material.agent_of(run)) == (env, agent)]
            for name, label in labels.items():
                if any(name in best_values(run) for run in own):
                    views[env, agent, name] = _best_view(own, name, label)
    menus = (
        Menu("environment", {key[0]: key[0] for key in views}),
        Menu("agent", {key[1]: key[1] for key in views}),
        Menu("component of λ", labels),
    )
    return Figure("best", "The value that evaluation would choose, one line per seed.", views, menus)


def _best_view(runs: Sequence[Run], name: str, label: str) -> View:
    traces = []
    for run in runs:
        kept = thin(len(run.train), MOST_POINTS)
        steps, best = series(run.train, "steps")[kept], best_values(run)[name][kept]
        traces.append(
            {
                "x": numbers(steps),
                "y": numbers(best),
                "mode": "lines",
                "line": {"shape": "hv", "width": 1.6},
                "name": f"seed {run.settings.seed}",
                "meta": {"x": "steps", "y": label},
            }
        )
    return View(
        tuple(traces),
        {"xaxis": {"title": {"text": "steps"}}, "yaxis": {"title": {"text": label}, "rangemode": "tozero"}},
    )


def _episode_figure(material: Material, runs: Sequence[Run]) -> Figure:
    """Draw the λ of the training episodes: the median and the middle 80% over bins of steps."""
    by_run: Mapping[str, Run] = {str(number): run for number, run in enumerate(runs)}
    labels = {name: run.settings.label_of(name) for run in runs for name in run.episodes.index}
    views: dict[tuple[str, ...], View] = {
        (key, name): _episode_view(run, name, labels[name])
        for key, run in by_run.items()
        for name in run.episodes.index
    }
    menus = (
        Menu("run", {key: run_label(material, run) for key, run in by_run.items()}),
        Menu("component of λ", labels),
    )
    caption = "λ of the training episodes: the median, and the range of the middle 80%, over 60 parts of the run."
    return Figure("episodes", caption, views, menus)


def _episode_view(run: Run, name: str, label: str) -> View:
    parts = np.array_split(np.arange(len(run.episodes)), min(60, len(run.episodes)))
    steps = [float(run.episodes.steps[part].mean()) for part in parts]
    low, middle, high = np.transpose([np.quantile(run.episodes.index[name][part], [0.1, 0.5, 0.9]) for part in parts])
    traces = []
    for value, title, dash in (
        (high, "90th percentile", "dot"),
        (middle, "median", "solid"),
        (low, "10th percentile", "dot"),
    ):
        traces.append(
            {
                "x": numbers(steps),
                "y": numbers(value),
                "mode": "lines",
                "name": title,
                "line": {"color": "#0072b2", "dash": dash, "width": 2 if dash == "solid" else 1.2},
                "meta": {"x": "steps", "y": label},
            }
        )
    layout = {
        "xaxis": {"title": {"text": "steps"}},
        "yaxis": {"title": {"text": plotly_text(label)}, "rangemode": "tozero"},
    }
    return View(tuple(traces), layout)
