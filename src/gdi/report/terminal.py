"""A run as one screen of text, drawn from its files alone: for ``gdi watch`` in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gdi.clock import duration
from gdi.report.console import format_score
from gdi.report.health import findings
from gdi.report.log import Line, clock_series, number
from gdi.report.runs import Run
from gdi.report.sections.control import summary
from gdi.report.strips import Strip, curve_lines, played_means, strips_of, strips_table

NEWEST_EVALUATIONS = 4
NEWEST_EPISODES = 100
# In a list of runs: spaces between columns, columns with names, and the least width of these.
GAP, NAMES, SHORTEST = 2, 3, 8
WITHOUT_E = {
    "fixed": "E does not learn here: λ stays the same.",
    "uniform": "E does not learn here: every λ is drawn uniformly.",
    "schedule": "E does not learn here: a schedule moves λ.",
}
DIM, WARNING = "dim", "yellow"


def dashboard(run: Run, width: int, height: int) -> Group:
    """Return one run: its state, what E did, the curve of returns, evaluations and health."""
    parts: list[RenderableType] = [*_head(run, width), Text(), *_control(run, width), Text()]
    below = [Text(), _evaluations(run.evaluations), Text(), *_health(run), *_remarks(run)]
    used = sum(len(part) if isinstance(part, list) else 1 for part in parts) + len(below) + NEWEST_EVALUATIONS + 3
    parts += _curve(run, width, int(np.clip(height - used - 4, 4, 12)))
    return Group(*parts, *below)


def _head(run: Run, width: int) -> list[RenderableType]:
    settings = run.settings
    title = Text.assemble((settings.agent or run.name, "bold"), "  ", run.env or "?", no_wrap=True, overflow="ellipsis")
    if settings.seed is not None:
        title.append(f"  seed {settings.seed}")
    title.append(f"  {run.folder}", DIM)
    speed = _speed(run)
    state = Text(run.state.text, no_wrap=True, overflow="ellipsis")
    if speed and run.state.word == "running":
        state.append(f"   {speed:,.0f} steps/s")
        if settings.steps:
            state.append(f"   {duration((settings.steps - run.steps) / speed)} left")
    bar = ProgressBar(total=settings.steps or max(1, run.steps), completed=run.steps, width=width - 2)
    return [title, state, bar]


def _speed(run: Run) -> float:
    """Return the speed of the newest line in steps per second, or 0 if it is unknown."""
    speeds = clock_series(run.train, "steps_per_second")
    return float(speeds[-1]) if speeds.size and np.isfinite(speeds[-1]) else 0.0


def run_strips(run: Run) -> list[Strip]:
    """Return the strips of a run's λ."""
    return strips_of(run.settings.axes, run.settings.labels, run.train, played_means(run.train, run.episodes))


def _control(run: Run, width: int) -> list[RenderableType]:
    strips = run_strips(run) if run.train else []
    said = summary(run) if run.train else ""
    words = said or WITHOUT_E.get(run.settings.controller, "")
    out: list[RenderableType] = [Text("what the controller (E) did", style=DIM)]
    if strips:
        out.append(strips_table(strips, width))
    if words:
        out.append(Text(words, style="bold"))
    if not strips and not words:
        out.append(Text("no belief is logged yet"))
    return out


def _curve(run: Run, width: int, height: int) -> list[RenderableType]:
    episodes = run.episodes
    if not len(episodes):
        return [Text("no training episode has ended yet", style=DIM)]
    newest = episodes.episode_return[-NEWEST_EPISODES:]
    title = f"training return, {newest.mean():.2f} over the last {len(newest)} of {len(episodes):,} episodes"
    lines = curve_lines(episodes.steps, episodes.episode_return, width - 2, height)
    ends = (
        f"0{episodes.steps[-1]:>{width - 3},.0f} steps"[: width - 2]
        if width < 30
        else _scale(episodes.steps[-1], width)
    )
    return [
        Text(title, style=DIM),
        *(Text(line, style="#56b4e9", no_wrap=True) for line in lines),
        Text(ends, style=DIM),
    ]


def _scale(last: float, width: int) -> str:
    end = f"{last:,.0f} steps"
    return f"0{end:>{width - 3}}"


def _evaluations(lines: Sequence[Line]) -> RenderableType:
    if not lines:
        return Text("no evaluation yet", style=DIM)
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(4):
        table.add_column(justify="right")
    table.add_row(*(Text(name, style=DIM) for name in ("evaluation at", "mean", "median", "lowest to highest")))
    for line in lines[-NEWEST_EVALUATIONS:]:
        low, high = number(line.get("min")), number(line.get("max"))
        mean, median = number(line.get("mean")), number(line.get("median"))
        table.add_row(
            f"{line['steps']:,}", f"{mean:.2f}", f"{median:.2f}", f"{format_score(low)} to {format_score(high)}"
        )
    return table


def _health(run: Run) -> list[RenderableType]:
    found = findings(run.train)
    wrong = [finding for finding in found if not finding.healthy]
    if not found:
        return [Text("health: too few lines to judge", style=DIM)]
    out: list[RenderableType] = [Text(f"health: {len(found) - len(wrong)} of {len(found)} numbers are healthy")]
    return out + [Text(finding.text, style=WARNING) for finding in wrong]


def _remarks(run: Run) -> list[RenderableType]:
    """Return what could not be read, and the newest notice of the run."""
    return [Text(note, style=WARNING) for note in (*run.notes, *run.notices[-1:])]


def runs_table(runs: Sequence[Run], root: Path, width: int) -> Text:
    """Return a list of several runs, one line each. Long names are cut, and numbers never."""
    rows = [("run", "agent", "environment", "state", "steps", "return")]
    for run in runs:
        newest = run.episodes.episode_return[-NEWEST_EPISODES:]
        name = str(run.folder.relative_to(root)) if run.folder.is_relative_to(root) else run.name
        mean = f"{newest.mean():.2f}" if newest.size else "-"
        rows.append((name, run.settings.agent, run.env, run.state.word, f"{run.steps:,}", mean))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + GAP * (len(widths) - 1) > width and max(widths[:NAMES]) > SHORTEST:
        widths[widths.index(max(widths[:NAMES]))] -= 1
    out = Text(no_wrap=True)
    for place, row in enumerate(rows):
        cells = [cut(cell, size) for cell, size in zip(row, widths, strict=True)]
        words = [cell.ljust(size) for cell, size in zip(cells[: NAMES + 1], widths, strict=False)]
        numbers = [cell.rjust(size) for cell, size in zip(cells[NAMES + 1 :], widths[NAMES + 1 :], strict=True)]
        out.append((" " * GAP).join([*words, *numbers]) + "\n", DIM if place == 0 else None)
    return out.append("\nTo see one of them: gdi watch RUN", DIM)


def cut(text: str, width: int) -> str:
    """Return a text of at most ``width`` characters, with a mark where it was cut."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
