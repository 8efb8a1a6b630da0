"""How sure E is, beside the entropy of the policy that it steers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gdi.report.document import Figure, Menu, Section, View, numbers, plotly_text
from gdi.report.log import series
from gdi.report.material import COLORS, DASHES, Material, run_label, thin
from gdi.report.runs import Run
from gdi.report.sections.control import beliefs
from gdi.types import Array

MOST_RUNS = 12
MOST_POINTS = 200


def sureness(material: Material) -> Section | None:
    """Return the two curves per run, one above the other."""
    views: dict[tuple[str, ...], View] = {}
    runs: dict[str, str] = {}
    for number, run in enumerate(material.runs):
        traces = tuple(_traces(run))
        if traces and len(runs) < MOST_RUNS:
            runs[str(number)] = run_label(material, run)
            views[(str(number),)] = View(traces, _layout(bool(beliefs(run))))
    if not views:
        return None
    caption = (
        "Above: how sure E is about each component of λ. 0 means that all blocks are equally likely, and 1 that one "
        "block is certain. Below: the entropy of the policy in nats."
    )
    figure = Figure("sureness", caption, views, (Menu("run", runs),), height=460)
    return Section("sureness", "How sure E is", (figure,))


def sureness_of(probability: Array) -> Array:
    """Return 1 - H(P) / log(blocks) of distributions ``[..., blocks]``: 0 for a uniform one, 1 for a certain one."""
    blocks = probability.shape[-1]
    if blocks < 2:
        return np.ones(probability.shape[:-1])
    share = probability / probability.sum(axis=-1, keepdims=True)
    entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=-1)
    return np.asarray(1 - entropy / np.log(blocks))


def _traces(run: Run) -> Iterator[dict[str, Any]]:
    for number, (name, belief) in enumerate(beliefs(run).items()):
        kept = thin(len(belief.steps), MOST_POINTS)
        label = run.settings.label_of(name)
        yield {
            "x": numbers(belief.steps[kept]),
            "y": numbers(sureness_of(belief.probability[kept]), 4),
            "name": plotly_text(label),
            "mode": "lines",
            "line": {"color": COLORS[number % len(COLORS)], "dash": DASHES[number % len(DASHES)], "width": 2},
            "meta": {"x": "steps", "y": "sureness"},
        }
    entropy = series(run.train, "policy/entropy")
    if np.isfinite(entropy).any():
        kept = thin(len(entropy), MOST_POINTS)
        yield {
            "x": numbers(series(run.train, "steps")[kept]),
            "y": numbers(entropy[kept]),
            "yaxis": "y2",
            "name": "entropy of the policy",
            "mode": "lines",
            "line": {"color": "ink", "width": 2},
            "meta": {"x": "steps", "y": "entropy (nats)"},
        }


def _layout(has_beliefs: bool) -> dict[str, Any]:
    if not has_beliefs:
        return {
            "xaxis": {"title": {"text": "steps"}, "anchor": "y2"},
            "yaxis2": {"title": {"text": "entropy (nats)"}, "rangemode": "tozero"},
            "showlegend": True,
        }
    return {
        "xaxis": {"title": {"text": "steps"}, "anchor": "y2"},
        "yaxis": {"domain": [0.56, 1.0], "title": {"text": "sureness"}, "rangemode": "tozero"},
        "yaxis2": {"domain": [0.0, 0.44], "title": {"text": "entropy (nats)"}, "rangemode": "tozero"},
        "showlegend": True,
    }
