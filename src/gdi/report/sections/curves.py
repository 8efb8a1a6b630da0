"""Learning curves: returns of evaluations and of training over steps, frames or hours, with 95% bootstrap bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from gdi.envs.names import is_atari
from gdi.errors import UserError
from gdi.report.document import Figure, Menu, Section, View, numbers, plotly_text
from gdi.report.log import Line, clock_series, series
from gdi.report.material import Look, Material, thin
from gdi.report.runs import Run
from gdi.scores import metrics
from gdi.scores.agents import published_agents
from gdi.scores.counts import Counts
from gdi.scores.games import GAMES, canonical_game
from gdi.scores.intervals import Bootstrap, Statistic, confidence_interval
from gdi.scores.reference import load_reference
from gdi.types import Array

MOST_POINTS = 300
# With fewer seeds nothing is left out of an interquartile mean.
FEWEST_FOR_IQM = 4
BOOTSTRAP = Bootstrap(replicates=1000)
SOURCES = {"evaluation": "evaluations", "train": "training episodes"}
METRIC = {"evaluation": "mean", "train": "episode/return"}
TIMES = {"steps": "steps", "frames": "frames", "hours": "hours"}
PUBLISHED = ("GDI-H3", "Agent57", "Rainbow")
BAND_OPACITY = 0.18


@dataclass(frozen=True)
class Aligned:
    """One metric of the runs of a group at the same points of training."""

    x: Mapping[str, Array]  # by time, [points]
    values: Array  # [runs, points], NaN where a run has none


def iqm_per_point(values: Array, counts: Counts | None = None) -> Array:
    """Return the interquartile mean over the runs at each point: ``[..., runs, points]`` to ``[..., points]``."""
    own = None if counts is None else np.moveaxis(counts, -1, -2)[..., None]
    return metrics.iqm(np.moveaxis(values, -1, -2)[..., None], own)


STATISTICS: Mapping[str, Statistic] = {"mean": metrics.game_means, "IQM": iqm_per_point}


def curves(material: Material) -> Section | None:
    """Return the learning curves of every environment."""
    if not any(run.train or run.evaluations for run in material.runs):
        return None
    sources = {
        key: label
        for key, label in SOURCES.items()
        if any(np.isfinite(series(_lines(run, key), METRIC[key])).any() for run in material.runs)
    }
    views: dict[tuple[str, ...], View] = {}
    scales: dict[str, str] = {}
    most_seeds = max(len(group.runs) for group in material.groups)
    statistics = ["mean", "IQM"] if most_seeds >= FEWEST_FOR_IQM else ["mean"]
    for env, source, statistic in product(material.envs, sources, statistics):
        for scale, label in scales_of(env).items():
            scales[scale] = label
            found = _views(material, env, source, scale, statistic)
            views |= {(env, source, scale, time, statistic): view for time, view in found.items()}
    times = {time: label for time, label in TIMES.items() if any(key[3] == time for key in views)}
    menus = (
        Menu("environment", {env: env for env in material.envs}),
        Menu("returns of", sources),
        Menu("return as", scales),
        Menu("over", times),
        Menu("statistic", {name: name for name in statistics}),
    )
    caption = (
        "The return of each group over its seeds. The band is a 95% bootstrap interval over seeds; one seed has none. "
        "Evaluations use the best λ that the controller knows; training episodes each have their own λ."
    )
    return Section("curves", "Learning curves", (Figure("curves", caption, views, menus, height=440),))


def scales_of(env: str) -> dict[str, str]:
    """Return the scales of returns in an environment. Only Atari games have human and record scores."""
    normalized = {"hns": "HNS (%)", "hwrns": "HWRNS (%)", "saber": "SABER (%)"}
    return {"return": "raw return", **(normalized if atari_game(env) else {})}


def atari_game(env: str) -> str:
    """Return the name of an Atari game in the score tables, or an empty text."""
    if not is_atari(env):
        return ""
    try:
        return canonical_game(env)
    except UserError:
        return ""


def _views(material: Material, env: str, source: str, scale: str, statistic: str) -> dict[str, View]:
    """Return one view per kind of time that any run knows."""
    found = [
        (group, aligned) for group in material.groups_in(env) if (aligned := align(group.runs, source)) is not None
    ]
    out = {}
    for time, label in TIMES.items():
        traces: list[dict[str, Any]] = []
        for group, aligned in found:
            look = material.looks[group.agent]
            if np.isfinite(aligned.x[time]).any():
                traces += list(
                    _traces(
                        group.agent, aligned.x[time], _rescale(env, scale)(aligned.values), look, STATISTICS[statistic]
                    )
                )
        if traces:
            layout = {
                "xaxis": {"title": {"text": label}, "rangemode": "tozero"},
                "yaxis": {"title": {"text": scales_of(env)[scale]}},
                "showlegend": True,
            }
            out[time] = View((*traces, *reference_lines(env, scale, traces)), layout)
    return out


def align(runs: Sequence[Run], source: str) -> Aligned | None:
    """Bring the lines of a group's runs to the same points: those of the run with the most lines.

    Another run has a value at a point if one of its lines is nearer to it than to the points beside it. Points that a
    run has not reached yet are left out, so that the mean is always over the same runs.
    """
    lines = [[line for line in _lines(run, source) if METRIC[source] in line] for run in runs]
    lines = [own for own in lines if own]
    if not lines:
        return None
    longest = max(lines, key=len)
    points = series(longest, "steps")
    reached = min(own[-1]["steps"] for own in lines)
    borders = (points[1:] + points[:-1]) / 2
    points = points[: int(np.searchsorted(borders, reached)) + 1]
    columns = {name: np.full((len(lines), len(points)), np.nan) for name in (*TIMES, "value")}
    for row, own in enumerate(lines):
        place = np.searchsorted(borders, series(own, "steps"))
        inside = place < len(points)
        for name, found in _columns(own, METRIC[source]).items():
            columns[name][row, place[inside]] = found[inside]
    values = columns.pop("value")
    return Aligned({name: metrics.game_means(found) for name, found in columns.items()}, values)


def _lines(run: Run, source: str) -> Sequence[Line]:
    return run.evaluations if source == "evaluation" else run.train


def _columns(lines: Sequence[Line], metric: str) -> dict[str, Array]:
    return {
        "steps": series(lines, "steps"),
        "frames": series(lines, "frames"),
        "hours": clock_series(lines, "seconds") / 3600,
        "value": series(lines, metric),
    }


def _rescale(env: str, scale: str) -> Callable[[Array], Array]:
    """Return the conversion of raw returns to a scale, in percent."""
    if scale == "return":
        return lambda values: values
    game = GAMES.index(atari_game(env))
    reference = load_reference("paper")

    def convert(values: Array) -> Array:
        scores = np.full((*values.shape, len(GAMES)), np.nan)
        scores[..., game] = values
        return np.asarray(100 * metrics.CRITERIA[scale](scores, reference)[..., game])

    return convert


def _traces(agent: str, x: Array, values: Array, look: Look, statistic: Statistic) -> Iterator[dict[str, Any]]:
    """Yield the band of a group, if it has seeds, and its curve."""
    kept = thin(values.shape[1], MOST_POINTS)
    x, values = x[kept], values[:, kept]
    name = plotly_text(agent)
    if len(values) > 1:
        low, high = confidence_interval(statistic, values, bootstrap=BOOTSTRAP)
        yield {
            "x": [*numbers(x), *numbers(x[::-1])],
            "y": [*numbers(high), *numbers(low[::-1])],
            "fill": "toself",
            "fillcolor": look.color,
            "opacity": BAND_OPACITY,
            "line": {"width": 0},
            "mode": "lines",
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": name,
            "meta": "band",
        }
    seeds = f" ({len(values)} seeds)" if len(values) > 1 else ""
    yield {
        "x": numbers(x),
        "y": numbers(statistic(values)),
        "name": f"{name}{seeds}",
        "legendgroup": name,
        "mode": "lines+markers" if len(kept) <= 40 else "lines",
        "line": {"color": look.color, "dash": look.dash, "width": 2.2},
        "marker": {"size": 5},
        "meta": {"y": "return"},
    }


def reference_lines(env: str, scale: str, traces: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the scores of random play, a human, the record and published agents as horizontal lines."""
    game = atari_game(env)
    if not game:
        return
    place, reference, rescale = GAMES.index(game), load_reference("paper"), _rescale(env, scale)
    known = {
        "random play": (reference.random[place], "soft"),
        "human": (reference.human[place], "ink"),
        "world record": (reference.world_record[place], "ink"),
    }
    for agent in published_agents().values():
        if agent.name in PUBLISHED:
            known[agent.name] = (metrics.game_means(agent.scores)[place], "soft")
    end = max((x for trace in traces for x in trace["x"] if x is not None), default=1.0)
    for number, (name, (score, color)) in enumerate(known.items()):
        value = float(rescale(np.array([score]))[0])
        if np.isfinite(value):
            yield {
                "x": [0, end],
                "y": numbers([value, value]),
                "name": f"{name}: {value:,.10g}",
                "mode": "lines",
                "line": {"color": color, "width": 1.3, "dash": ("dot", "dash", "longdash", "dashdot")[number % 4]},
                "visible": True if name in ("random play", "human") else "legendonly",
            }
