"""The figures of the benchmark. Each function returns one figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.minatar_sweep.agents import AGENTS
from benchmarks.minatar_sweep.records import SPACE, Row
from benchmarks.minatar_sweep.stats import normalizer
from benchmarks.minatar_sweep.tables import agents_in, games_in, health_value, label
from gdi.scores import metrics
from gdi.scores.runs import Run, curve, estimate, score_matrix
from gdi.scores.style import ABLATION, BLACK, BLUE, GDI, GRAY, GREEN, ORANGE, OTHER, PURPLE, SKY, VERMILION, Style
from gdi.types import Array

STYLES = {
    "gdi-i3": Style(ORANGE, GDI),
    "gdi-i3-q10": Style(ORANGE, ABLATION),
    "gdi-h3": Style(VERMILION, GDI),
    "fixed": Style(GRAY, ABLATION),
    "fixed-unscaled": Style(BLACK, ABLATION),
    "random": Style(SKY, ABLATION),
    "boltzmann": Style(PURPLE, ABLATION),
    "epsilon-greedy": Style(GREEN, ABLATION),
    "ppo": Style(BLUE, OTHER),
    "dqn": Style(BLACK, OTHER),
}
AXIS_LABELS = dict(zip(SPACE.names, SPACE.labels, strict=True))
HEALTH = {
    "entropy": "policy entropy (nats)",
    "advantage_scale": "A scale",
    "ratio_clip_fraction": "ratios clipped",
    "value_error": "V target − V",
}
MILLION = 1e6
Value = Callable[[Row, str], float | None]  # a quantity of a row by its name; None if it was not logged


def curves_figure(runs: Sequence[Run]) -> Figure:
    """Plot one panel per game: the mean over seeds of each evaluation, with its 95% interval."""
    games = games_in(runs)
    columns = min(3, len(games) + 1)
    rows = -(-(len(games) + 1) // columns)
    figure = Figure(figsize=(4.3 * columns, 3.3 * rows), dpi=110, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, game in zip(panels, games, strict=False):
        for agent in agents_in(runs):
            if found := curve(runs, agent, game):
                _line(axes, agent, found.steps, found.mean, found.band)
        axes.set_title(game)
        axes.set_xlabel("steps, millions")
        axes.set_ylabel("evaluation return")
        axes.set_xlim(left=0)
        _plain(axes)
    _legend_panel(panels[len(games)], agents_in(runs))
    for axes in panels[len(games) + 1 :]:
        axes.set_axis_off()
    figure.suptitle("MinAtar: mean of 32 evaluation episodes; bands are 95% bootstrap intervals over seeds")
    return figure


def _line(axes: Axes, agent: str, x: Array, y: Array, band: tuple[Array, Array] | None) -> None:
    style = STYLES[agent]
    axes.plot(
        x / MILLION,
        y,
        color=style.color,
        linestyle=style.family.dash,
        linewidth=2.4 if style.prominent else 1.4,
        zorder=4 if style.prominent else 3,
        label=label(agent),
    )
    if band is not None:
        axes.fill_between(x / MILLION, *band, color=style.color, alpha=0.15, linewidth=0, zorder=2)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _legend_panel(axes: Axes, agents: Sequence[str]) -> None:
    """Draw a panel that holds only the legend."""
    for agent in agents:
        _line(axes, agent, np.array([]), np.array([]), None)
    axes.set_axis_off()
    axes.legend(loc="center left", frameon=False, handlelength=3.2)


def iqm_figure(runs: Sequence[Run]) -> Figure | None:
    """Plot the normalized IQM of every agent with its interval, best on top.

    Return None without DQN's scores, which are the divisor.
    """
    games = games_in(runs)
    divisor = normalizer(runs, games)
    found = {agent: estimate(metrics.iqm, score_matrix(runs, agent, games) / divisor) for agent in agents_in(runs)}
    found = {agent: value for agent, value in found.items() if np.isfinite(value.value)}
    if not found:
        return None
    order = sorted(found, key=lambda agent: found[agent].value)
    figure = Figure(figsize=(8, 1.4 + 0.42 * len(order)), dpi=110, layout="constrained")
    axes = figure.subplots()
    for place, agent in enumerate(order):
        value, style = found[agent], STYLES[agent]
        if value.has_interval:
            axes.plot([value.low, value.high], [place, place], color=style.color, linewidth=7, alpha=0.4)
        axes.plot(value.value, place, style.family.marker, color=style.color, markeredgecolor="black", markersize=9)
        right = value.high if value.has_interval else value.value
        axes.annotate(f"{value.value:.2f}", (right, place), xytext=(7, 0), textcoords="offset points", va="center")
    axes.axvline(1, color="black", linewidth=0.9, linestyle="--")
    axes.set_yticks(range(len(order)), [label(agent) for agent in order])
    axes.set_ylim(-0.6, len(order) - 0.4)  # room for the outermost bars
    axes.set_xlim(0, 1.12 * max(1.0, *(np.nanmax([value.value, value.high]) for value in found.values())))
    axes.set_xlabel(f"IQM of score / DQN's mean score, over {len(games)} games; 95% bootstrap intervals")
    _plain(axes)
    return figure


def lambda_figure(rows: Sequence[Row]) -> Figure | None:
    """Plot what the controllers propose over time, per game and searched axis of Λ.

    Return None if no agent searches. Lines are the mean of the proposals, averaged over seeds, with bands over all
    seeds. Dots are the best blocks, one per seed and log line.
    """
    searching = [row for row in rows if any(row[f"top_probability_{axis}"] for axis in SPACE.names)]
    if not searching:
        return None

    def proposed(row: Row, axis: str) -> float | None:
        return float(row[f"mean_{axis}"]) if row[f"top_probability_{axis}"] else None

    def best(row: Row, axis: str) -> float | None:
        return float(row[f"best_{axis}"]) if row[f"top_probability_{axis}"] else None

    figure = _grid_figure(searching, AXIS_LABELS, proposed, best)
    figure.suptitle(
        "λ over time: the mean of the controller's proposals over seeds (band: all seeds; dots: best blocks)"
    )
    return figure


def health_figure(rows: Sequence[Row]) -> Figure | None:
    """Plot the learners' health over time, per game: the mean over seeds, with bands over all seeds."""
    if not rows:
        return None
    figure = _grid_figure(rows, HEALTH, health_value)
    figure.suptitle("Health of the GDI learners (line: mean over seeds; band: all seeds)")
    return figure


def _grid_figure(rows: Sequence[Row], names: Mapping[str, str], value: Value, dots: Value | None = None) -> Figure:
    """Plot a grid with a row per quantity, a column per game and a line per agent.

    Dots show a second value of every row.
    """
    games = list(dict.fromkeys(row["game"] for row in rows))
    agents = [agent for agent in AGENTS if any(row["agent"] == agent for row in rows)]
    figure = Figure(figsize=(1.6 + 2.9 * len(games), 0.9 + 2.2 * len(names)), dpi=90, layout="constrained")
    panels = figure.subplots(len(names), len(games), squeeze=False, sharex=True, sharey="row")
    for line, (name, title) in zip(panels, names.items(), strict=True):
        for axes, game in zip(line, games, strict=True):
            for agent in agents:
                chosen = [row for row in rows if (row["agent"], row["game"]) == (agent, game)]
                for x, low, mean, high in _over_seeds(chosen, name, value):
                    _line(axes, agent, x, mean, (low, high))
                if dots is not None:
                    points = [(int(row["steps"]) / MILLION, dots(row, name)) for row in chosen]
                    x, y = np.array([point for point in points if point[1] is not None]).reshape(-1, 2).T
                    axes.scatter(x, y, s=3, color=STYLES[agent].color, alpha=0.3, linewidths=0)
            _plain(axes)
        line[0].set_ylabel(title)
    for axes, game in zip(panels[0], games, strict=True):
        axes.set_title(game)
    for axes in panels[-1]:
        axes.set_xlabel("steps, millions")
    lines = {line.get_label(): line for axes in panels.flatten() for line in axes.get_lines()}
    names_below = [label(agent) for agent in agents if label(agent) in lines]
    figure.legend(
        [lines[name] for name in names_below], names_below, loc="outside lower center", ncols=4, frameon=False
    )
    return figure


def _over_seeds(rows: Sequence[Row], name: str, value: Value) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Return the steps with the lowest, mean and highest seed; empty if the quantity was never logged."""
    seeds: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if (y := value(row, name)) is not None:
            seeds.setdefault(row["seed"], []).append((float(row["steps"]), y))
    if seeds:
        lines = [np.array(sorted(points)).T for points in seeds.values()]
        # The steps of log lines differ slightly between seeds, so all seeds are read at the first one's steps.
        x = lines[0][0]
        ys = np.array([np.interp(x, steps, values) for steps, values in lines])
        yield x, ys.min(axis=0), ys.mean(axis=0), ys.max(axis=0)
