"""The interactive page: Plotly figures with menus, in one file that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from gdi.scores import metrics
from gdi.scores.figures import AXES, Profile, x_position
from gdi.scores.games import GAMES, title
from gdi.scores.reference import Reference
from gdi.scores.style import Style
from gdi.scores.summaries import CRITERION_LABELS, STATISTIC_LABELS, Summary
from gdi.scores.tables import SCRIPT, STYLE, Table, frames_text, html_table

_CONFIG = {"displaylogo": False, "responsive": True}

_MENUS = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const config = JSON.parse(document.getElementById("config").textContent);
for (const section of document.querySelectorAll("section[data-figure]")) {
  const menus = [...section.querySelectorAll("select")], plot = section.querySelector(".plot");
  const draw = () => {
    const figure = figures[[section.dataset.figure, ...menus.map(menu => menu.value)].join("/")];
    Plotly.react(plot, figure.data, figure.layout, config);
  };
  menus.forEach(menu => menu.addEventListener("change", draw));
  draw();
}
document.body.dataset.ready = "yes";
"""

_PAGE_STYLE = """
.plot { width: 100%; min-height: 34rem; }
section[data-figure=games] .plot { min-height: 68rem; }
select { font: inherit; margin: 0 .8rem .5rem 0; padding: .2rem .4rem; }
:root { color-scheme: light; }
"""


def write_page(
    path: Path,
    summaries: Sequence[Summary],
    styles: Mapping[str, Style],
    reference: Reference,
    profiles: Mapping[str, Mapping[str, Profile]],
    tables: Sequence[Table],
) -> Path:
    """Write the page with everything it needs, including Plotly's script."""
    figures: dict[str, Any] = {}
    for criterion in metrics.CRITERIA:
        for axis in AXES:
            for statistic in ("mean", "median", "iqm"):
                key = f"benchmark/{criterion}/{statistic}/{axis}"
                figures[key] = _plain(_benchmark(summaries, styles, f"{statistic}_{criterion}", axis))
        figures[f"profile/{criterion}"] = _plain(_profiles(profiles[criterion], styles, criterion))
        for summary in summaries:
            figures[f"games/{summary.agent.name}/{criterion}"] = _plain(_games(summary, styles, criterion, reference))
    for axis in AXES:
        figures[f"hwrb/{axis}"] = _plain(_benchmark(summaries, styles, "hwrb", axis))
    criteria = {key: f"{label}" for key, label in CRITERION_LABELS.items()}
    statistics = {key: STATISTIC_LABELS[key] for key in ("mean", "median", "iqm")}
    names = sorted((s.agent.name for s in summaries), key=lambda name: not styles[name].prominent)
    sections = [
        _section("benchmark", "Performance against cost", criteria, statistics, dict(AXES)),
        _section("hwrb", "Human world record breakthroughs", dict(AXES)),
        _section("profile", "Performance profiles", criteria),
        _section("games", "Game by game", {name: name for name in names}, criteria),
        *(html_table(table) for table in tables),
    ]
    intro = (
        f"{len(summaries)} agents on up to 57 Atari games, normalized with the reference table {reference.name!r}. "
        "Hover over a point for its numbers, click on a name to hide it, double-click to see it alone."
    )
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Atari scores</title>',
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">',
        f"<style>{STYLE}{_PAGE_STYLE}</style>",
        f"<script>{get_plotlyjs()}</script></head>",
        f'<body><h1>Atari scores</h1><p class="note">{html.escape(intro)}</p>',
        *sections,
        f'<script id="figures" type="application/json">{_embedded(figures)}</script>',
        f'<script id="config" type="application/json">{_embedded(_CONFIG)}</script>',
        f"<script>{_MENUS}{SCRIPT}</script></body></html>",
    ]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def _embedded(value: object) -> str:
    """Return JSON that cannot end its script element, whatever an agent is called."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _plain(figure: go.Figure) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(figure.to_json())
    # The default template is the same for all figures and larger than most of them.
    plain["layout"].pop("template", None)
    return plain


def _section(name: str, heading: str, *menus: dict[str, str]) -> str:
    chosen = "".join(
        "<select>" + "".join(f'<option value="{html.escape(k)}">{html.escape(v)}</option>' for k, v in menu.items())
        + "</select>"
        for menu in menus
    )  # fmt: skip
    return (
        f'<section data-figure="{name}"><h2>{html.escape(heading)}</h2>\n{chosen}\n<div class="plot"></div></section>\n'
    )


def _layout(**more: Any) -> dict[str, Any]:
    grid = {"gridcolor": "#dddddd", "zeroline": False, "linecolor": "#444444", "ticks": "outside"}
    layout: dict[str, Any] = {
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#222222"},
        "margin": {"l": 80, "r": 20, "t": 20, "b": 60},
    }
    for name, value in more.items():
        layout[name] = {**grid, **value} if name in ("xaxis", "yaxis") else value
    return layout


def _benchmark(summaries: Sequence[Summary], styles: Mapping[str, Style], quantity: str, axis: str) -> go.Figure:
    figure = go.Figure()
    percent = quantity != "hwrb"
    heights = []
    for summary in summaries:
        x = x_position(summary, axis, quantity)
        if x is None:
            continue
        style, value = styles[summary.agent.name], summary.values[quantity]
        heights.append(value)
        frames = frames_text(summary.agent.frames or 0)
        shown = f"{100 * value:,.2f} %" if percent else f"{value:.0f} records"
        figure.add_trace(
            go.Scatter(
                x=[x],
                y=[100 * value if percent else value],
                mode="markers",
                name=summary.agent.name,
                marker={
                    "color": style.color,
                    "symbol": style.family.plotly_marker,
                    "size": 18 if style.prominent else 12,
                    "line": {"color": "black", "width": 0.8},
                },
                hovertemplate=f"<b>{html.escape(summary.agent.name)}</b><br>{shown}<br>{frames} frames, "
                f"{summary.games} games<extra></extra>",
            )
        )
    y_title = "human world record breakthroughs" if not percent else _quantity_label(quantity)
    y_log = percent and all(value > 0 for value in heights)
    figure.update_layout(
        _layout(
            xaxis={"type": "log", "title": {"text": AXES[axis]}, "exponentformat": "power", "dtick": 1},
            yaxis={"type": "log" if y_log else "linear", "title": {"text": y_title}, **({"dtick": 1} if y_log else {})},
        )
    )
    return figure


def _quantity_label(quantity: str) -> str:
    statistic, _, criterion = quantity.rpartition("_")
    return f"{STATISTIC_LABELS[statistic]} {CRITERION_LABELS[criterion]} (%)"


def _profiles(profiles: Mapping[str, Profile], styles: Mapping[str, Style], criterion: str) -> go.Figure:
    figure = go.Figure()
    for name, found in profiles.items():
        style = styles[name]
        if found.band is not None:
            low, high = found.band
            figure.add_trace(
                go.Scatter(
                    x=[*found.thresholds.tolist(), *found.thresholds[::-1].tolist()],
                    y=[*_rounded(high), *_rounded(low[::-1])],
                    fill="toself",
                    fillcolor=_translucent(style.color),
                    line={"width": 0},
                    hoverinfo="skip",
                    showlegend=False,
                    legendgroup=name,
                )
            )
        figure.add_trace(
            go.Scatter(
                x=[float(f"{x:.5g}") for x in found.thresholds],
                y=_rounded(found.fraction),
                name=name,
                legendgroup=name,
                mode="lines",
                line={
                    "color": style.color,
                    "dash": style.family.plotly_dash,
                    "width": 3.5 if style.prominent else 1.8,
                },
                hovertemplate="%{y:.0%} above %{x:,.4g} %",
            )
        )
    x: dict[str, Any] = {"title": {"text": f"{CRITERION_LABELS[criterion]} τ (%)"}}
    if criterion != "saber":
        x |= {"type": "log", "range": [0, 5 if criterion == "hns" else 3.5], "dtick": 1, "tickformat": ","}
    figure.update_layout(
        _layout(
            xaxis=x,
            yaxis={"title": {"text": "fraction of runs and games above τ"}, "range": [-0.01, 1.01]},
            hovermode="closest",
        )
    )
    return figure


def _games(summary: Summary, styles: Mapping[str, Style], criterion: str, reference: Reference) -> go.Figure:
    """Plot horizontal bars, best on top.

    Plotly has no symmetric logarithm, so a bar's length is log10(1 + |x|).
    """
    agent = summary.agent
    runs = 100 * metrics.CRITERIA[criterion](agent.scores, reference)
    heights = metrics.game_means(runs)
    scores = metrics.game_means(agent.scores)
    order = [int(i) for i in np.argsort(heights) if np.isfinite(heights[i])]
    linear = criterion == "saber"
    place = (lambda v: v) if linear else _signed_log
    values = heights[order]
    bars: dict[str, Any] = {}
    if (np.isfinite(runs).sum(axis=0) > 1).any():
        spread = np.array([np.nanstd(runs[:, i], ddof=1) if np.isfinite(runs[:, i]).sum() > 1 else 0.0 for i in order])
        bars["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": _rounded(place(values + spread) - place(values), 4),
            "arrayminus": _rounded(place(values) - place(values - spread), 4),
            "thickness": 1.2,
        }
    style = styles[agent.name]
    figure = go.Figure(
        go.Bar(
            x=_rounded(place(values), 4),
            y=[title(GAMES[i]) for i in order],
            orientation="h",
            marker={
                "color": style.color,
                "opacity": [0.7 if value >= 100 else 0.3 for value in values],
                "line": {"color": "black", "width": 0.5},
            },
            customdata=[[float(f"{heights[i]:.6g}"), float(f"{scores[i]:.6g}")] for i in order],
            hovertemplate="<b>%{y}</b><br>%{customdata[0]:,.6g} %<br>score %{customdata[1]:,.6g}<extra></extra>",
            **bars,
        )
    )
    x: dict[str, Any] = {"title": {"text": f"{CRITERION_LABELS[criterion]} (%)"}}
    if not linear:
        ticks = [-1000, -100, -10, 0, 10, 100, 1000, 10_000, 100_000]
        x |= {"tickvals": _rounded(place(np.array(ticks, dtype=float)), 4), "ticktext": [f"{t:,}" for t in ticks]}
    hundred = float(place(np.array(100.0)))
    figure.update_layout(
        _layout(
            xaxis=x,
            yaxis={"tickfont": {"size": 11}, "dtick": 1, "automargin": True},
            height=120 + 17 * len(order),
            bargap=0.2,
        )
    )
    figure.add_vline(x=hundred, line={"color": "black", "width": 1, "dash": "dash"})
    return figure


def _signed_log(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(np.sign(values) * np.log10(1 + np.abs(values)))


def _rounded(values: np.ndarray[Any, np.dtype[np.float64]], digits: int = 5) -> list[float]:
    return [float(value) for value in np.round(values, digits)]


def _translucent(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"
