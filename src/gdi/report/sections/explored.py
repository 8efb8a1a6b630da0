"""The states that two runs explored: a map by t-SNE, and the overlap in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gdi.report.document import Figure, Section, TableBlock, Text, View, numbers, plotly_text
from gdi.report.pictures import data_url, picture
from gdi.report.states import KeptStates
from gdi.report.tsne import PERPLEXITY, SEED, StateMap
from gdi.scores.style import BLUE, VERMILION
from gdi.scores.tables import Column, Estimate, Table
from gdi.types import Array

STAGES = ("early", "middle", "later")
# Light, medium and full shades of two hues of Okabe and Ito.
SHADES = (("#73b2da", "#338ec4", BLUE), ("#edaf7d", "#e28340", VERMILION))
MARKERS = ("circle", "diamond")
CELLS = 12  # the map is cut into CELLS × CELLS squares, each with one exemplar
BACKGROUND_CELLS = 90
BACKGROUND = [[0, "rgba(127,127,127,0)"], [1, "rgba(127,127,127,0.4)"]]


def explored(labels: Sequence[str], kept: Sequence[KeptStates], found: StateMap, names: Sequence[str]) -> Section:
    """Return the section about two runs; ``names`` are the labels of the components of λ."""
    total = found.overlaps[-1]
    said = (
        f"A classifier by nearest neighbors mistakes the agent of a state with an error of {total.text}. "
        "It is 0.5 if both agents visit the same states, and 0 if they share none."
    )
    note = (
        f"t-SNE of {len(found.agent):,} states with perplexity {PERPLEXITY:g} and seed {SEED}, on {found.components} "
        f"components of PCA, which hold {found.explained:.0%} of the variance. The overlap is measured on these "
        "components, not on the map, because t-SNE draws groups in noise as well. A neighbor counts only if it is from "
        "another episode, and the 95% intervals resample episodes."
    )
    blocks = (Text(said, "summary"), TableBlock(_table(labels, kept, found)), _figure(labels, kept, found, names))
    return Section("explored", "Explored states", (*blocks, Text(note, "note")))


def _table(labels: Sequence[str], kept: Sequence[KeptStates], found: StateMap) -> Table:
    columns = [Column("stage", "third of the run"), Column("error", "error of the classifier", ".3f")]
    for number, label in enumerate(labels):
        columns.append(Column(f"return_{number}", f"mean return, {label}", ".2f"))
        columns.append(Column(f"value_{number}", f"mean V, {label}", ".2f"))
    rows = []
    for stage, name in enumerate((*STAGES, "all")):
        error = found.overlaps[stage]
        cells: list[Any] = [name, Estimate(error.error, error.low, error.high)]
        for states in kept:
            chosen = states.stage == stage if stage < len(STAGES) else np.ones(len(states), bool)
            cells += [_mean(states.episode_return[chosen]), _mean(states.value[chosen])]
        rows.append(tuple(cells))
    return Table("overlap", "How far the states of the two runs overlap", tuple(columns), tuple(rows))


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _figure(labels: Sequence[str], kept: Sequence[KeptStates], found: StateMap, names: Sequence[str]) -> Figure:
    exemplars, frame_of = choose_exemplars(found)
    traces: list[Mapping[str, Any]] = []
    grid = {"rows": 3, "columns": 2, "pattern": "independent", "xgap": 0.06, "ygap": 0.12}
    layout: dict[str, Any] = {"grid": grid, "showlegend": False}
    titles = []
    for panel, (stage, agent) in enumerate((stage, agent) for stage in range(3) for agent in (0, 1)):
        axes = {"xaxis": f"x{panel + 1}" if panel else "x", "yaxis": f"y{panel + 1}" if panel else "y"}
        title = f"{STAGES[stage]} stage of {labels[agent]}"
        traces += [{**_background(found), **axes}]
        traces.append({**_highlighted(title, kept[agent], found, (agent, stage), names, frame_of), **axes})
        for name in axes.values():
            layout[f"{name[0]}axis{name[1:]}"] = {
                "visible": False,
                "range": _range(found.place[:, int(name[0] == "y")]),
            }
        titles.append(_title(plotly_text(title), panel))
    layout["annotations"] = titles
    caption = (
        "Each panel highlights the states of one third of one run among all states, which are gray. A point shows the "
        "frame of a state near it, with λ, V and the return of its episode."
    )
    frames = tuple(data_url(image) for state in exemplars if (image := picture(found.obs[state])) is not None)
    return Figure("tsne", caption, {(): View(tuple(traces), layout)}, height=1100, frames=frames)


def _title(text: str, panel: int) -> dict[str, Any]:
    number = str(panel + 1) if panel else ""
    place = {"xref": f"x{number} domain", "yref": f"y{number} domain", "x": 0, "y": 1.0, "xanchor": "left"}
    return {**place, "yanchor": "bottom", "text": text, "showarrow": False, "font": {"size": 14}}


def _range(places: Array) -> list[float | None]:
    margin = 0.03 * float(np.ptp(places)) + 1e-9
    return numbers([float(places.min()) - margin, float(places.max()) + margin])


def _background(found: StateMap) -> dict[str, Any]:
    counts, x, y = np.histogram2d(found.place[:, 0], found.place[:, 1], bins=BACKGROUND_CELLS)
    return {
        "type": "heatmap",
        "name": "all states",
        "x": numbers(x),
        "y": numbers(y),
        "z": [numbers(row) for row in np.minimum(counts.T, 2) / 2],
        "colorscale": BACKGROUND,
        "showscale": False,
        "hoverinfo": "skip",
        "meta": "band",
    }


def _highlighted(
    title: str,
    states: KeptStates,
    found: StateMap,
    which: tuple[int, int],
    names: Sequence[str],
    frame_of: Array,
) -> dict[str, Any]:
    agent, stage = which
    rows = np.flatnonzero((found.agent == agent) & (found.stage == stage))
    own = rows - (found.agent == 0).sum() if agent else rows
    told = [
        [int(frame), _text(states.value[i]), _text(states.episode_return[i]), _index(names, states.index[i])]
        for frame, i in zip(frame_of[rows], own, strict=True)
    ]
    return {
        "type": "scatter",
        "name": title,
        "mode": "markers",
        "x": numbers(found.place[rows, 0], 4),
        "y": numbers(found.place[rows, 1], 4),
        "customdata": told,
        "marker": {"color": SHADES[agent][stage], "symbol": MARKERS[agent], "size": 5},
        "hovertemplate": "%{customdata[3]}<br>V %{customdata[1]}<br>return %{customdata[2]}<extra></extra>",
        "meta": {"x": "first axis of the map", "y": "second axis of the map"},
    }


def _text(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "unknown"


def _index(names: Sequence[str], index: Array) -> str:
    return plotly_text("  ".join(f"{name} {value:.3g}" for name, value in zip(names, index.tolist(), strict=False)))


def choose_exemplars(found: StateMap) -> tuple[Array, Array]:
    """Return one state for each square of the map that has any, [k], and the nearest of these of every state, [n]."""
    low, extent = found.place.min(0), np.ptp(found.place, axis=0) + 1e-9
    scaled = (found.place - low) / extent * CELLS
    square = np.minimum(scaled.astype(int), CELLS - 1)
    off_center = ((scaled - square - 0.5) ** 2).sum(1)
    order = np.argsort(off_center, kind="stable")
    _, first = np.unique(square[order] @ [CELLS, 1], return_index=True)
    exemplars = order[first]
    distance = ((scaled[:, None] - scaled[exemplars][None]) ** 2).sum(-1)
    return exemplars, distance.argmin(1)
