"""The report as tables: every game, each agent's aggregates, and the comparison with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gdi.scores import metrics
from gdi.scores.agents import Agent
from gdi.scores.games import GAMES, title
from gdi.scores.reference import Array
from gdi.scores.report import Report
from gdi.scores.summaries import CRITERION_LABELS, STATISTIC_LABELS, Summary
from gdi.scores.tables import Cell, Column, Estimate, Table, frames_text


def report_tables(report: Report) -> list[Table]:
    """Return the report as tables: every game, each agent's aggregates, and the comparison with others.

    The summary comes last because a terminal shows the end.
    """
    tables = [_games_table(report, summary) for summary in report.mine]
    tables += [_own_table(summary) for summary in report.mine]
    if report.others or len(report.mine) > 1:
        tables.append(_standing_table(report))
    if len(report.mine) > 1 and report.improvements:
        tables.append(_improvement_table(report))
    last = tables[-1]
    basis = (
        f"Reference: {report.reference.name}. "
        "HNS is the percentage of the average human, and HWRNS of the human world record."
    )
    tables[-1] = replace(last, notes=(*report.notes, basis))
    return tables


def _own_table(summary: Summary) -> Table:
    agent = summary.agent
    rows: list[tuple[Cell, ...]] = []
    for criterion in metrics.CRITERIA:
        for statistic in metrics.STATISTICS:
            name = f"{statistic}_{criterion}"
            efficiency = summary.efficiency(name) if statistic in ("mean", "median") else None
            low, high = summary.intervals.get(name, (None, None))
            rows.append(
                (
                    f"{STATISTIC_LABELS[statistic]} {CRITERION_LABELS[criterion]} %",
                    100 * summary.values[name],
                    None if low is None else 100 * low,
                    None if high is None else 100 * high,
                    "" if efficiency is None else f"{efficiency:.2E}",
                )
            )
    count = [summary.values["hwrb"], *summary.intervals.get("hwrb", (None, None))]
    # A percentile of counts may fall between two counts.
    rows.append(
        ("human world record breakthroughs", *(int(x) if x is not None and x.is_integer() else x for x in count), "")
    )
    columns = [Column("quantity", "quantity"), Column("value", "value", "quantity")]
    keep = [0, 1]
    if summary.intervals:
        columns += [Column("low", "low", "quantity"), Column("high", "high", "quantity")]
        keep += [2, 3]
    if agent.frames is not None:
        columns.append(Column("learning_efficiency", "learning efficiency"))
        keep.append(4)
    counts = [count for count in agent.runs_per_game if count]
    runs = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    heading = f"{agent.name}: {_count(summary.games, 'game')}, {runs} run{'s' if max(counts) > 1 else ''} per game"
    if agent.frames is not None:
        heading += f", {frames_text(agent.frames)} frames = {metrics.game_time(agent.frames):.3g} years of play"
    cut = tuple(tuple(row[i] for i in keep) for row in rows)
    return Table(f"aggregates_{agent.name}", heading, tuple(columns), cut, ruled=frozenset({4, 8, 12}))


def _standing_table(report: Report) -> Table:
    """Rank all agents by IQM HNS, best first.

    With a single own agent, add the probability that it beats each other one.
    """
    single = report.mine[0].agent.name if len(report.mine) == 1 else None
    better = {i.other: i for i in report.improvements if i.agent == single}
    everyone = sorted([*report.mine, *report.others], key=lambda summary: -summary.values["iqm_hns"])
    columns = [
        Column("agent", "agent"),
        Column("games", "games", "d"),
        Column("frames", "frames", "frames"),
        Column("game_time_years", "years", ".3g"),
        Column("hwrb", "HWRB", ".0f"),
        Column("iqm_hns_percent", "IQM\nHNS", ".1f"),
        Column("median_hns_percent", "median\nHNS", ".1f"),
        Column("mean_hns_percent", "mean\nHNS", ".1f"),
        Column("optimality_gap_hns_percent", "HNS\ngap", ".1f"),
        Column("median_hwrns_percent", "median\nHWRNS", ".1f"),
        Column("mean_hwrns_percent", "mean\nHWRNS", ".1f"),
        Column("median_saber_percent", "median\nSABER", ".1f"),
        Column("mean_saber_percent", "mean\nSABER", ".1f"),
        Column("learning_efficiency_of_mean_hns", "efficiency\nmean HNS", ".2E"),
    ]
    if single is not None:
        columns.append(Column("probability_of_improvement", f"P({single}\nis better)", ".2f"))
    names = [column.name.removesuffix("_percent") for column in columns]
    rows: list[tuple[Cell, ...]] = []
    for summary in everyone:
        frames = summary.agent.frames
        row: list[Cell] = [summary.agent.name, summary.games, frames]
        row.append(None if frames is None else metrics.game_time(frames))
        row.append(summary.values["hwrb"])
        row += [100 * summary.values[name] for name in names[5:13]]
        row.append(summary.efficiency("mean_hns"))
        if single is not None:
            found = better.get(summary.agent.name)
            if found is None:
                row.append("" if summary.agent.name == single else None)
            elif found.interval is None:
                row.append(found.value)
            else:
                row.append(Estimate(found.value, *found.interval))
        rows.append(tuple(row))
    own = {summary.agent.name for summary in report.mine}
    marked = frozenset(i for i, summary in enumerate(everyone) if summary.agent.name in own)
    return Table("standing", "Standing, by interquartile mean of HNS (%)", tuple(columns), tuple(rows), marked)


def _improvement_table(report: Report) -> Table:
    columns = (
        Column("agent", "agent"),
        Column("other", "other"),
        Column("games", "games", "d"),
        Column("probability_of_improvement", "P(agent is better)", ".2f"),
    )
    rows: list[tuple[Cell, ...]] = []
    for found in report.improvements:
        value: Cell = found.value if found.interval is None else Estimate(found.value, *found.interval)
        rows.append((found.agent, found.other, found.games, value))
    return Table("improvement", "Probability of improvement", columns, tuple(rows))


def _games_table(report: Report, summary: Summary) -> Table:
    """List every game of one agent, with the HNS of up to four other agents."""
    agent = summary.agent
    others = [other.agent for other in (*report.mine, *report.others) if other is not summary]
    beside = others if len(others) <= 4 else []
    seeded = max(agent.runs_per_game) > 1
    columns = [Column("game", "game"), Column("score", "score", ".1f")]
    if seeded:
        columns += [Column("score_std", "± std", ".1f"), Column("runs", "runs", "d")]
    columns += [Column(f"{name}_percent", f"{label} %", ".2f") for name, label in CRITERION_LABELS.items()]
    columns.append(Column("breakthrough", "record"))
    columns += [Column(f"hns_percent_{other.name}", f"{other.name}\nHNS %", ".2f") for other in beside]
    if others:
        columns += [Column("best_other", "best other"), Column("best_other_score", "its score", ".1f")]
        columns.append(Column("rank", "rank", "d"))
    scores, reference = agent.scores[:, agent.reported], report.reference.restricted_to(agent.reported)
    per_game, record = metrics.game_means(scores), metrics.breakthroughs(scores, reference)
    normalized = [100 * metrics.game_means(criterion(scores, reference)) for criterion in metrics.CRITERIA.values()]
    other_scores = [_game_scores(other)[agent.reported] for other in others]
    normalized_others = [100 * metrics.hns(found, reference) for found in other_scores[: len(beside)]]
    rows: list[tuple[Cell, ...]] = []
    for i, game in enumerate(np.array(GAMES)[agent.reported]):
        row: list[Cell] = [title(str(game)), float(per_game[i])]
        row += _spread(scores[:, i]) if seeded else []
        row += [*(float(values[i]) for values in normalized), bool(record[i])]
        row += [float(values[i]) for values in normalized_others]
        row += _rank(float(per_game[i]), others, [float(values[i]) for values in other_scores]) if others else []
        rows.append(tuple(row))
    return Table(f"games_{agent.name}", f"{agent.name}, game by game", tuple(columns), tuple(rows))


def _game_scores(agent: Agent) -> Array:
    """Return the mean score of each of the 57 games, NaN for a missing one."""
    means = np.full(len(GAMES), np.nan)
    means[agent.reported] = metrics.game_means(agent.scores[:, agent.reported])
    return means


def _spread(scores: Array) -> list[Cell]:
    """Return the standard deviation over the runs of a game, and their number."""
    runs = scores[np.isfinite(scores)]
    return [float(runs.std(ddof=1)) if runs.size > 1 else None, int(runs.size)]


def _rank(score: float, others: Sequence[Agent], scores: Sequence[float]) -> list[Cell]:
    """Return the best other agent in a game, its score, and the rank of the own score."""
    found = np.array(scores)
    if not np.isfinite(found).any():
        return ["", None, 1]
    best = int(np.nanargmax(found))
    return [others[best].name, scores[best], 1 + int((found > score).sum())]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
