"""Several agents or games: final scores, IQM, performance profiles, probability of improvement, small multiples.

Scores of different games are compared after division: by human or record scores for Atari, by the mean final score of
an agent that the user names otherwise. Intervals are 95% bootstrap intervals over the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gdi.report.document import Block, Figure, Menu, Section, TableBlock, Text, View, numbers, plotly_text
from gdi.report.material import Material, cell_of, scored_runs
from gdi.report.sections.curves import atari_game
from gdi.report.sections.improvement import improvement
from gdi.report.sections.panels import small_multiples
from gdi.scores import metrics
from gdi.scores import runs as scored
from gdi.scores.games import GAMES
from gdi.scores.intervals import confidence_interval, has_seeds
from gdi.scores.reference import load_reference
from gdi.scores.tables import Column, Table
from gdi.types import Array

STATISTICS = {"iqm": metrics.iqm, "mean": metrics.mean, "median": metrics.median}
LABELS = {"iqm": "IQM", "mean": "mean", "median": "median"}
THRESHOLDS = 60
Matrices = Mapping[str, Array]  # by agent, [runs, games]


def games(material: Material) -> Section | None:
    """Return the comparison, if there are several agents, or several environments or seeds of one."""
    runs = scored_runs(material)
    if len(runs) < 2:
        return None
    envs = sorted({run.game for run in runs})
    agents = [agent for agent in material.agents if any(run.agent == agent for run in runs)]
    raw = {agent: scored.score_matrix(runs, agent, envs) for agent in agents}
    blocks: list[Block] = [TableBlock(score_table(raw, envs))]
    if len(envs) > 1:
        blocks.append(small_multiples(material, envs))
        blocks += _across_games(material, raw, runs, envs)
    if len(agents) > 1:
        blocks += improvement(runs, agents, envs)
    return Section("games", "Agents and games", tuple(blocks))


def score_table(raw: Matrices, envs: Sequence[str]) -> Table:
    """Return the mean final score of each agent in each environment."""
    columns = (Column("agent", "agent"), *(Column(env, env, ".1f") for env in envs))
    rows = []
    for agent, matrix in raw.items():
        rows.append((agent, *(cell_of(scored.estimate(metrics.mean, matrix[:, [i]])) for i in range(len(envs)))))
    title = "Final scores: the mean over seeds of each run's last evaluation, with 95% bootstrap intervals over seeds"
    return Table("scores", title, columns, tuple(rows))


def normalized(
    material: Material, raw: Matrices, runs: Sequence[scored.Run], envs: Sequence[str]
) -> dict[str, Matrices]:
    """Return the score matrices on every scale on which these environments can be compared, by its label."""
    out: dict[str, Matrices] = {}
    names = [atari_game(env) for env in envs]
    if all(names):
        places, reference = [GAMES.index(name) for name in names], load_reference("paper")
        for name, criterion in metrics.CRITERIA.items():
            out[name.upper()] = {
                agent: criterion(_all_games(m, places), reference)[:, places] for agent, m in raw.items()
            }
    if material.baseline:
        divisor = scored.normalizer(runs, material.baseline, envs)
        out[f"score / {material.baseline}"] = {agent: matrix / divisor for agent, matrix in raw.items()}
    return out


def _all_games(matrix: Array, places: Sequence[int]) -> Array:
    out = np.full((len(matrix), len(GAMES)), np.nan)
    out[:, places] = matrix
    return out


def _across_games(
    material: Material, raw: Matrices, runs: Sequence[scored.Run], envs: Sequence[str]
) -> Iterator[Block]:
    """Yield the aggregates and the profiles on every scale."""
    scales = normalized(material, raw, runs, envs)
    if not scales:
        yield Text(
            "Scores of these environments are not on one scale. Name an agent with --baseline: its mean final score "
            "in each environment is then 1.",
            "note",
        )
        return
    for label, matrices in scales.items():
        yield TableBlock(aggregate_table(matrices, label))
    yield _interval_figure(material, scales)
    yield _profile_figure(material, scales)


def aggregate_table(matrices: Matrices, label: str) -> Table:
    """Return IQM, mean and median over games of each agent."""
    columns = (
        Column("agent", "agent"),
        *(Column(name, LABELS[name], ".2f") for name in STATISTICS),
        Column("games", "games", ".0f"),
        Column("runs", "runs", ".0f"),
    )
    rows = []
    for agent, matrix in matrices.items():
        has = np.isfinite(matrix)
        cells = [cell_of(scored.estimate(statistic, matrix)) for statistic in STATISTICS.values()]
        rows.append((agent, *cells, int(has.any(axis=0).sum()), int(has.sum())))
    title = f"Over all games: {label}, with 95% bootstrap intervals"
    return Table(f"aggregates-{label}", title, columns, tuple(rows))


def _interval_figure(material: Material, scales: Mapping[str, Matrices]) -> Figure:
    """Draw each agent's statistic as a point with its interval, the best on top."""
    views: dict[tuple[str, ...], View] = {}
    for label, matrices in scales.items():
        for name, statistic in STATISTICS.items():
            found = {agent: scored.estimate(statistic, matrix) for agent, matrix in matrices.items()}
            traces = []
            order = sorted((a for a in found if np.isfinite(found[a].value)), key=lambda a: found[a].value)
            for agent in order:
                one, look = found[agent], material.looks[agent]
                bar: dict[str, Any] = {}
                if one.has_interval:
                    ends = {"array": numbers([one.high - one.value]), "arrayminus": numbers([one.value - one.low])}
                    bar = {"error_x": {"type": "data", "symmetric": False, **ends, "thickness": 2.5}}
                traces.append(
                    {
                        "x": numbers([one.value]),
                        "y": [plotly_text(agent)],
                        "mode": "markers",
                        "marker": {"color": look.color, "size": 11},
                        "name": plotly_text(agent),
                        "showlegend": False,
                        "meta": {"x": label, "y": "agent"},
                        **bar,
                    }
                )
            layout = {"xaxis": {"title": {"text": f"{LABELS[name]} of {plotly_text(label)}"}, "rangemode": "tozero"}}
            views[label, name] = View(tuple(traces), {**layout, "height": 130 + 32 * len(traces)})
    menus = (Menu("scale", {label: label for label in scales}), Menu("statistic", LABELS))
    caption = "Each agent over all games and seeds, with its 95% bootstrap interval. Overlapping intervals do not rank."
    return Figure("aggregates", caption, views, menus, height=200)


def _profile_figure(material: Material, scales: Mapping[str, Matrices]) -> Figure:
    """Draw the fraction of runs and games above each score."""
    views: dict[tuple[str, ...], View] = {}
    for label, matrices in scales.items():
        top = max(float(np.nanquantile(matrix, 0.98)) for matrix in matrices.values() if np.isfinite(matrix).any())
        taus = np.linspace(0, max(top, 1.0), THRESHOLDS)
        traces: list[dict[str, Any]] = []
        for agent, matrix in matrices.items():
            traces += list(_profile_traces(agent, matrix, taus, material))
        layout = {
            "xaxis": {"title": {"text": f"{plotly_text(label)} τ"}},
            "yaxis": {"title": {"text": "fraction above τ"}, "range": [0, 1.02]},
        }
        views[(label,)] = View(tuple(traces), layout)
    caption = (
        "Performance profiles: the fraction of runs and games that score above τ. A curve further right is better."
    )
    return Figure("profiles", caption, views, (Menu("scale", {label: label for label in scales}),), height=430)


def _profile_traces(agent: str, matrix: Array, taus: Array, material: Material) -> Iterator[dict[str, Any]]:
    look, name = material.looks[agent], plotly_text(agent)
    kept = matrix[:, np.isfinite(matrix).any(axis=0)]
    if not kept.size:
        return
    if has_seeds(kept):
        low, high = confidence_interval(
            lambda scores, counts: metrics.performance_profile(scores, taus, counts), kept, bootstrap=scored.BOOTSTRAP
        )
        yield {
            "x": [*numbers(taus), *numbers(taus[::-1])],
            "y": [*numbers(high, 3), *numbers(low[::-1], 3)],
            "fill": "toself",
            "fillcolor": look.color,
            "opacity": 0.14,
            "line": {"width": 0},
            "mode": "lines",
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": name,
            "meta": "band",
        }
    yield {
        "x": numbers(taus),
        "y": numbers(metrics.performance_profile(kept, taus), 3),
        "name": name,
        "legendgroup": name,
        "mode": "lines",
        "line": {"color": look.color, "dash": look.dash, "width": 2.2},
        "meta": {"x": "τ", "y": "fraction"},
    }
