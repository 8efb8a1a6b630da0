"""Small multiples: the learning curves of every environment in a panel of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gdi.report.document import Figure, View, numbers, plotly_text
from gdi.report.material import Material
from gdi.report.sections.curves import align
from gdi.scores import metrics

COLUMNS_OF_PANELS = 3


def small_multiples(material: Material, envs: Sequence[str]) -> Figure:
    """Draw the learning curves of every environment in a panel of its own."""
    rows = -(-len(envs) // COLUMNS_OF_PANELS)
    layout: dict[str, Any] = {
        "grid": {"rows": rows, "columns": COLUMNS_OF_PANELS, "pattern": "independent", "ygap": 0.32, "xgap": 0.16},
        "height": 90 + 230 * rows,
        "annotations": [],
        "legend": {"orientation": "h", "y": -0.12 / rows - 0.02},
    }
    traces = []
    named: set[str] = set()
    for place, env in enumerate(envs):
        suffix = str(place + 1) if place else ""
        layout |= {f"xaxis{suffix}": {"rangemode": "tozero"}, f"yaxis{suffix}": {"rangemode": "tozero"}}
        for group in material.groups_in(env):
            aligned = align(group.runs, "evaluation")
            if aligned is None:
                continue
            look, name = material.looks[group.agent], plotly_text(group.agent)
            traces.append(
                {
                    "x": numbers(aligned.x["steps"]),
                    "y": numbers(metrics.game_means(aligned.values)),
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "mode": "lines",
                    "name": name,
                    "legendgroup": name,
                    "showlegend": name not in named,
                    "line": {"color": look.color, "dash": look.dash, "width": 1.8},
                    "meta": {"x": f"{env}: steps", "y": "mean return"},
                }
            )
            named.add(name)
        layout["annotations"].append(_panel_title(env, suffix))
    return Figure(
        "panels", "Mean evaluation return over steps, one panel per environment.", {(): View(tuple(traces), layout)}
    )


def _panel_title(env: str, suffix: str) -> dict[str, Any]:
    return {
        "text": plotly_text(env),
        "xref": f"x{suffix} domain",
        "yref": f"y{suffix} domain",
        "x": 0,
        "y": 1.02,
        "yanchor": "bottom",
        "xanchor": "left",
        "showarrow": False,
        "font": {"size": 13},
    }
