"""All figures at once: PNG and SVG files and one interactive page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from gdi.scores import figures
from gdi.scores.agents import Agent
from gdi.scores.intervals import Bootstrap
from gdi.scores.metrics import CRITERIA
from gdi.scores.page import write_page
from gdi.scores.reference import load_reference
from gdi.scores.report import judge
from gdi.scores.style import styles_for
from gdi.scores.summary_tables import report_tables


def draw_all(
    out: Path,
    mine: Sequence[Agent],
    against: Sequence[Agent],
    reference: str = "paper",
    bootstrap: Bootstrap | None = None,
    only: str = "all",
) -> list[Path]:
    """Draw the paper's figures into `out`, with `mine` among the agents, and return the files written.

    `only` is ``all``, ``static`` (PNG and SVG) or ``page`` (index.html).
    """
    out.mkdir(parents=True, exist_ok=True)
    table = load_reference(reference)
    report = judge(mine or against, against if mine else (), reference, bootstrap)
    summaries = (*report.mine, *report.others)
    agents = [summary.agent for summary in summaries]
    styles = styles_for(
        tuple(a.name for a in against if not mine or a.name in {s.agent.name for s in report.others}),
        tuple(summary.agent.name for summary in report.mine) if mine else (),
    )
    # The histograms per game cover GDI's two agents, as in the paper, and the user's.
    shown = [agent for agent in agents if styles[agent.name].prominent]
    profiles = {c: {agent.name: figures.profile(agent, c, table, bootstrap) for agent in agents} for c in CRITERIA}
    written: list[Path] = []
    if only in ("all", "static"):
        drawn = {
            f"{criterion}-{axis}": figures.benchmark_figure(summaries, styles, criterion, axis)
            for criterion in CRITERIA
            for axis in figures.AXES
        }
        drawn["hwrb"] = figures.hwrb_figure(summaries, styles)
        for criterion in CRITERIA:
            for agent in shown:
                name = f"games-{criterion}-{_slug(agent.name)}"
                drawn[name] = figures.histogram_figure(agent, styles[agent.name], criterion, table)
            drawn[f"profile-{criterion}"] = figures.profile_figure(profiles[criterion], styles, criterion)
        written += [path for name, figure in drawn.items() for path in save(figure, out, name)]
    if only in ("all", "page"):
        tables = [item for item in report_tables(report) if item.name == "standing"]
        written.append(write_page(out / "index.html", summaries, styles, table, profiles, tables))
    return written


def save(figure: Figure, out: Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG.

    A fixed salt and no date make the same scores give the same bytes.
    """
    png, svg = out / f"{name}.png", out / f"{name}.svg"
    with mpl.rc_context({"svg.hashsalt": "gdi", "svg.fonttype": "path"}):
        figure.savefig(png, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
