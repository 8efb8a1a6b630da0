"""The paper's score figures as static matplotlib figures. Each function returns one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from gdi.scores import metrics
from gdi.scores.agents import Agent
from gdi.scores.counts import Counts
from gdi.scores.games import GAMES, title
from gdi.scores.intervals import Bootstrap, batch_size, confidence_interval, has_seeds
from gdi.scores.reference import Array, Reference
from gdi.scores.style import Style
from gdi.scores.summaries import CRITERION_LABELS, Summary
from gdi.scores.tables import frames_text

AXES = {
    "game_time": "game time (years of play)",
    "efficiency": "learning efficiency",
    "scale": "training frames",
}


@dataclass(frozen=True)
class Profile:
    """A performance profile over thresholds in percent, with a band for agents with seeds."""

    thresholds: Array
    fraction: Array
    band: tuple[Array, Array] | None


def x_position(summary: Summary, axis: str, quantity: str) -> float | None:
    """Return an agent's position on one of `AXES`.

    Return None without frames, or if the value has no logarithm.
    """
    frames = summary.agent.frames
    if frames is None:
        return None
    if axis == "game_time":
        return metrics.game_time(frames)
    if axis == "scale":
        return frames
    value = metrics.learning_efficiency(summary.values[quantity], frames)
    return value if value > 0 else None


def thresholds_for(criterion: str) -> Array:
    """Return thresholds in percent: logarithmic, except for SABER, which ends at its cap."""
    return np.linspace(0, 200, 201) if criterion == "saber" else np.logspace(-1, 5.5, 261)


def profile(agent: Agent, criterion: str, reference: Reference, bootstrap: Bootstrap | None) -> Profile:
    """Return an agent's performance profile; the band is a pointwise stratified bootstrap interval."""
    taus = thresholds_for(criterion)
    played = agent.reported
    scores = metrics.CRITERIA[criterion](agent.scores[:, played], reference.restricted_to(played))

    def of(normalized: Array, counts: Counts | None = None) -> Array:
        return metrics.performance_profile(normalized, taus / 100, counts)

    band = None
    if bootstrap is not None and bootstrap.replicates and has_seeds(scores):
        band = confidence_interval(of, scores, bootstrap=bootstrap, batch=batch_size(agent.scores))
    return Profile(taus, of(scores), band)


def benchmark_figure(summaries: Sequence[Summary], styles: Mapping[str, Style], criterion: str, axis: str) -> Figure:
    """Plot mean and median of a criterion against game time, learning efficiency or training scale."""
    figure = _figure(12.5, 5.4)
    panels: dict[Axes, list[_Mark]] = {}
    for place, statistic in enumerate(("mean", "median")):
        quantity = f"{statistic}_{criterion}"
        points = [
            (summary.agent.name, x, 100 * summary.values[quantity])
            for summary in summaries
            if (x := x_position(summary, axis, quantity)) is not None
        ]
        axes = figure.add_subplot(1, 2, place + 1)
        what = f"{statistic} {CRITERION_LABELS[criterion]}"
        axes.set_ylabel(f"{what} (%)")
        axes.set_xlabel(AXES[axis] if axis != "efficiency" else f"learning efficiency ({what} / frames)")
        panels[axes] = _scatter(axes, points, styles, log_y=all(y > 0 for _, _, y in points))
        _frame_ticks(axes, axis)
    figure.suptitle(f"Atari, 57 games: {CRITERION_LABELS[criterion]} against {AXES[axis]}")
    _place_labels(figure, panels, styles)
    return figure


def hwrb_figure(summaries: Sequence[Summary], styles: Mapping[str, Style]) -> Figure:
    """Plot human world record breakthroughs against all three axes."""
    figure = _figure(16.5, 5.0)
    panels: dict[Axes, list[_Mark]] = {}
    for place, axis in enumerate(AXES):
        points = [
            (summary.agent.name, x, summary.values["hwrb"])
            for summary in summaries
            if (x := x_position(summary, axis, "hwrb")) is not None
        ]
        axes = figure.add_subplot(1, 3, place + 1)
        axes.set_ylabel("human world record breakthroughs")
        axes.set_xlabel(AXES[axis] if axis != "efficiency" else "learning efficiency (HWRB / frames)")
        panels[axes] = _scatter(axes, points, styles, log_y=False)
        _frame_ticks(axes, axis)
    figure.suptitle("Atari, 57 games: human world record breakthroughs (without a breakthrough: no efficiency)")
    _place_labels(figure, panels, styles)
    return figure


@dataclass(frozen=True)
class _Mark:
    """A drawn point that still needs a label."""

    name: str
    x: float
    y: float
    line: Line2D


def _scatter(
    axes: Axes, points: Sequence[tuple[str, float, float]], styles: Mapping[str, Style], log_y: bool
) -> list[_Mark]:
    axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    marks = []
    for name, x, y in points:
        family = styles[name].family
        (line,) = axes.plot(x, y, family.marker, color=styles[name].color, markeredgecolor="black", markeredgewidth=0.6)
        line.set_markersize(16 if family.marker == "*" else 8.5)
        marks.append(_Mark(name, x, y, line))
    axes.margins(0.16, 0.12)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_minor_locator(NullLocator())
    if log_y:
        axes.yaxis.set_major_formatter(plain)
        axes.yaxis.set_minor_locator(NullLocator())
    return marks


def _frame_ticks(axes: Axes, axis: str) -> None:
    if axis == "scale":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: frames_text(value)))
    elif axis == "game_time":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _place_labels(figure: Figure, panels: Mapping[Axes, Sequence[_Mark]], styles: Mapping[str, Style]) -> None:
    """Label each point as near as possible, without covering labels or points.

    Distant labels get a line to their point.
    """
    figure.tight_layout()
    figure.draw_without_rendering()
    for axes, marks in panels.items():
        inside = axes.get_window_extent()
        spots = [axes.transData.transform((mark.x, mark.y)) for mark in marks]
        taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in spots]
        # Draw overlapping points in decreasing size, so that all remain visible.
        by_size = sorted(range(len(marks)), key=lambda i: -marks[i].line.get_markersize())
        for rank, i in enumerate(by_size):
            covered = sum(np.hypot(*(spots[i] - spots[j])) < 8 for j in by_size[:rank])
            size = marks[i].line.get_markersize() * 0.6**covered
            marks[i].line.set_markersize(size)
            marks[i].line.set_zorder(5 - size / 20)
        # Crowded points choose first, because they have the fewest free positions.
        crowd = [sum(abs(x - u) < 90 and abs(y - v) < 40 for u, v in spots) for x, y in spots]
        for index in sorted(range(len(marks)), key=lambda i: -crowd[i]):
            mark, (x, y) = marks[index], spots[index]
            text = axes.annotate(
                mark.name,
                xy=(mark.x, mark.y),
                xytext=(0, 0),
                textcoords="offset pixels",
                fontsize=10,
                fontweight="bold" if styles[mark.name].prominent else "normal",
                verticalalignment="bottom",
                horizontalalignment="left",
                zorder=6,
            )
            box = text.get_window_extent()
            width, height = box.width, box.height
            for dx, dy in _offsets(width, height):
                left, low = x + dx, y + dy
                spot = (left - 1, low - 1, left + width + 1, low + height + 1)
                within = inside.x0 < spot[0] and spot[2] < inside.x1 and inside.y0 < spot[1] and spot[3] < inside.y1
                if within and not any(_overlap(spot, other) for other in taken):
                    break
            text.set_position((dx, dy))
            taken.append((x + dx, y + dy, x + dx + width, y + dy + height))
            near = np.clip(x, x + dx, x + dx + width), np.clip(y, y + dy, y + dy + height)
            if np.hypot(near[0] - x, near[1] - y) > 16:
                ends = axes.transData.inverted().transform([(x, y), near])
                axes.plot(ends[:, 0], ends[:, 1], color="#888888", linewidth=0.7, zorder=2)


def _offsets(width: float, height: float) -> list[tuple[float, float]]:
    """Return label positions relative to a point: right, left, above, below, then further out."""
    places = []
    for distance in (9, 14, 22, 32, 44, 58, 74, 92, 112):
        for angle in np.deg2rad([0, 180, 90, 270, 25, -25, 155, -155, 50, -50, 130, -130]):
            ux, uy = np.cos(angle), np.sin(angle)
            # The distance is measured to the text's near edge, not to its corner.
            across = -width if ux < -0.3 else -width / 2 if ux < 0.3 else 0.0
            along = -height if uy < -0.6 else -height / 2 if uy < 0.6 else 0.0
            places.append((float(distance * ux + across), float(distance * uy + along)))
    return places


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def histogram_figure(agent: Agent, style: Style, criterion: str, reference: Reference) -> Figure:
    """Plot one bar per game, best first, with ± one standard deviation over seeds if there are any."""
    runs = 100 * metrics.CRITERIA[criterion](agent.scores, reference)
    heights = metrics.game_means(runs)
    order = [int(i) for i in np.argsort(heights) if np.isfinite(heights[i])]
    figure = _figure(8.2, 1.9 + 0.185 * len(order))
    axes = figure.add_subplot()
    places = np.arange(len(order))
    values = heights[order]
    counts = np.isfinite(runs[:, order]).sum(axis=0)
    spread = np.array([np.nanstd(runs[:, i], ddof=1) if n > 1 else np.nan for i, n in zip(order, counts, strict=True)])
    bars = axes.barh(places, values, color=style.color, edgecolor="black", linewidth=0.4)
    for bar, value in zip(bars, values, strict=True):
        # Bars are translucent, because one end of an error bar lies on its bar.
        bar.set_alpha(0.7 if value >= 100 else 0.3)
    if np.isfinite(spread).any():
        axes.errorbar(values, places, xerr=spread, fmt="none", ecolor="black", elinewidth=1.0, capsize=2)
    if criterion != "saber":
        axes.set_xscale("symlog", linthresh=10)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.axvline(100, color="black", linewidth=0.9, linestyle="--")
    against = "average human" if criterion == "hns" else "world record"
    axes.set_xlabel(f"{CRITERION_LABELS[criterion]} (%); the dashed line is the {against}, bars below it are pale")
    axes.set_yticks(places, [title(GAMES[i]) for i in order], fontsize=8)
    axes.set_ylim(-0.7, len(order) - 0.3)
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    end = values + np.nan_to_num(spread)
    for place, value, right in zip(places, values, end, strict=True):
        axes.annotate(
            f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}",
            xy=(max(right, 0), place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85},
        )
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (2.2 if criterion != "saber" else 1.06))
    note = "" if not np.isfinite(spread).any() else ", ± one standard deviation over seeds"
    axes.set_title(f"{agent.name}: {CRITERION_LABELS[criterion]} on {len(order)} games{note}", fontsize=11)
    figure.tight_layout()
    return figure


def profile_figure(profiles: Mapping[str, Profile], styles: Mapping[str, Style], criterion: str) -> Figure:
    """Plot the fraction of runs and games above each score, with a band for agents with seeds."""
    figure = _figure(10.5, 5.8)
    axes = figure.add_subplot()
    # The legend follows the order of the curves at 100%, so that it can be read along them.
    at_hundred = {name: float(np.interp(100, p.thresholds, p.fraction)) for name, p in profiles.items()}
    for name in sorted(profiles, key=lambda name: -at_hundred[name]):
        found, style = profiles[name], styles[name]
        axes.plot(
            found.thresholds,
            found.fraction,
            color=style.color,
            linestyle=style.family.dash,
            linewidth=2.6 if style.prominent else 1.5,
            zorder=4 if style.prominent else 3,
            marker=style.family.marker,
            markevery=(0.0, 0.12),
            markersize=8 if style.family.marker == "*" else 4.5,
            label=name,
        )
        if found.band is not None:
            axes.fill_between(found.thresholds, *found.band, color=style.color, alpha=0.2, linewidth=0, zorder=2)
    if criterion != "saber":
        axes.set_xscale("log")
        axes.set_xlim(1, 1e5 if criterion == "hns" else 3e3)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    else:
        axes.set_xlim(0, 200)
    axes.axvline(100, color="black", linewidth=0.8, linestyle=":")
    axes.set_ylim(-0.01, 1.01)
    axes.set_xlabel(f"{CRITERION_LABELS[criterion]} τ (%)")
    axes.set_ylabel("fraction of runs and games with a score above τ")
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_title(f"Performance profiles by {CRITERION_LABELS[criterion]}", fontsize=12)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=10, handlelength=3.2)
    figure.tight_layout()
    return figure


def _figure(width: float, height: float) -> Figure:
    """Return a separate figure outside pyplot, which needs no closing and changes no global state."""
    return Figure(figsize=(width, height), dpi=110)
