"""Compares agents with published ones: aggregates, every game, and notes that readers should know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gdi.errors import UserError
from gdi.scores import metrics
from gdi.scores.agents import Agent, Mask
from gdi.scores.games import GAMES, title
from gdi.scores.intervals import Bootstrap, Statistic, confidence_interval, has_seeds
from gdi.scores.reference import Array, Reference, load_reference
from gdi.scores.tables import Cell, Column, Estimate, Table, frames_text

CRITERION_LABELS = {"hns": "HNS", "hwrns": "HWRNS", "saber": "SABER"}
STATISTIC_LABELS = {"mean": "mean", "median": "median", "iqm": "IQM", "optimality_gap": "optimality gap"}

# The twelve aggregates of a score matrix, in the order of `aggregate_vector`. HWRB comes after them.
AGGREGATES = tuple(f"{statistic}_{criterion}" for criterion in metrics.CRITERIA for statistic in metrics.STATISTICS)


@dataclass(frozen=True)
class Summary:
    """One agent's aggregates as fractions, with intervals if there are seeds."""

    agent: Agent
    games: int
    values: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def cell(self, name: str, scale: float = 1.0) -> Cell:
        """Return an aggregate for a table, with its interval if it has one."""
        value = self.values[name] * scale
        if name not in self.intervals:
            return value
        low, high = self.intervals[name]
        return Estimate(value, low * scale, high * scale)

    def efficiency(self, name: str) -> float | None:
        """Return the learning efficiency of an aggregate, or None if the number of frames is unknown."""
        if self.agent.frames is None:
            return None
        return metrics.learning_efficiency(self.values[name], self.agent.frames)


@dataclass(frozen=True)
class Improvement:
    """The probability that a run of `agent` beats one of `other` on a game that both have."""

    agent: str
    other: str
    games: int
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Report:
    """The result of `judge`."""

    reference: Reference
    mine: tuple[Summary, ...]
    others: tuple[Summary, ...]
    improvements: tuple[Improvement, ...]
    notes: tuple[str, ...]


def aggregate_vector(scores: Array, reference: Reference) -> Array:
    """Return all `AGGREGATES` and HWRB of score matrices ``[..., runs, 57]``, as ``[..., 13]``."""
    columns = []
    for criterion in metrics.CRITERIA.values():
        normalized = criterion(scores, reference)
        columns += [statistic(normalized) for statistic in metrics.STATISTICS.values()]
    return np.stack([*columns, metrics.hwrb(scores, reference)], axis=-1)


def summarize(agent: Agent, reference: Reference, bootstrap: Bootstrap | None = None) -> Summary:
    """Return all aggregates of one agent.

    Confidence intervals are added if the agent has seeds and `bootstrap` is set.
    """
    names = (*AGGREGATES, "hwrb")
    values = dict(zip(names, map(float, aggregate_vector(agent.scores, reference)), strict=True))
    intervals: dict[str, tuple[float, float]] = {}
    if bootstrap is not None and bootstrap.replicates and has_seeds(agent.scores):
        low, high = confidence_interval(
            lambda scores: aggregate_vector(scores, reference), agent.scores, bootstrap=bootstrap
        )
        intervals = {name: (float(a), float(b)) for name, a, b in zip(names, low, high, strict=True)}
    return Summary(agent, int(agent.reported.sum()), values, intervals)


def judge(
    agents: Sequence[Agent],
    against: Sequence[Agent] = (),
    reference: str = "paper",
    bootstrap: Bootstrap | None = None,
    common: bool = False,
) -> Report:
    """Compare the aggregates of `agents` with those of `against`, on the games that `agents` have.

    With `common`, all agents are restricted to the games that every one of them has. That makes the aggregates
    comparable at the price of fewer games. Otherwise each agent's aggregates cover the games it has, and a note says
    so.
    """
    if not agents:
        raise ValueError("there is no agent to judge")
    for agent in agents:
        if not agent.reported.any():
            raise UserError(f"{agent.name} has no score in any of the 57 games.")
    taken = {agent.name for agent in against}
    agents = [replace(agent, name=f"{agent.name} (yours)") if agent.name in taken else agent for agent in agents]
    table = load_reference(reference)
    played: Mask = np.any([agent.reported for agent in agents], axis=0)
    kept = []
    notes: list[str] = []
    for agent in against:
        cut = agent.restricted_to(played)
        if cut.reported.any():
            kept.append(cut)
        else:
            notes.append(f"{agent.name} is left out: it reports none of these games.")
    everyone = [*agents, *kept]
    if common:
        shared: Mask = np.all([agent.reported for agent in everyone], axis=0)
        if not shared.any():
            raise UserError("--common leaves no game: no game is reported by all of these agents.")
        everyone = [agent.restricted_to(shared) for agent in everyone]
        if shared.sum() < played.sum():
            notes.append(f"--common: {int(shared.sum())} of {int(played.sum())} games, those that every agent reports.")
    mine, others = everyone[: len(agents)], everyone[len(agents) :]
    notes += _coverage_notes(mine, others)
    notes += [note for agent in mine for note in _dominance_notes(agent, table)]
    improvements = tuple(
        _improvement(a, b, bootstrap) for a in mine for b in [*(x for x in mine if x is not a), *others]
    )
    return Report(
        table,
        tuple(summarize(agent, table, bootstrap) for agent in mine),
        tuple(summarize(agent, table) for agent in others),
        tuple(i for i in improvements if i is not None),
        tuple(notes),
    )


def _improvement(agent: Agent, other: Agent, bootstrap: Bootstrap | None) -> Improvement | None:
    shared = agent.reported & other.reported
    if not shared.any():
        return None
    x, y = agent.restricted_to(shared).scores, other.restricted_to(shared).scores
    interval = None
    if bootstrap is not None and bootstrap.replicates and (has_seeds(x) or has_seeds(y)):
        if has_seeds(y):
            statistic: Statistic = metrics.probability_of_improvement
            matrices = [x[:, shared], y[:, shared]]
        else:  # one run of the other per game: count each run's win once, and not in every replicate
            statistic, matrices = metrics.mean, [metrics.wins(x, metrics.game_means(y))[:, shared]]
        low, high = confidence_interval(statistic, *matrices, bootstrap=bootstrap)
        interval = (float(low), float(high))
    value = float(metrics.probability_of_improvement(x, y))
    return Improvement(agent.name, other.name, int(shared.sum()), value, interval)


def _coverage_notes(mine: Sequence[Agent], others: Sequence[Agent]) -> list[str]:
    notes = []
    for agent in mine:
        missing = [title(game) for game, there in zip(GAMES, agent.reported, strict=True) if not there]
        if missing:
            notes.append(
                f"{agent.name} has {57 - len(missing)} of the 57 games; its aggregates leave out {_listed(missing)}."
            )
        counts = [count for count in agent.runs_per_game if count]
        if max(counts) != min(counts):
            notes.append(
                f"{agent.name} has {min(counts)} to {max(counts)} runs per game; IQM and optimality gap pool the runs, "
                "so games with more runs weigh more there."
            )
        elif max(counts) == 1:
            notes.append(f"{agent.name} has one run per game: nothing is known about its variation over seeds.")
    played: Mask = np.any([agent.reported for agent in mine], axis=0)
    short = [f"{agent.name} ({int(agent.reported.sum())})" for agent in others if agent.reported.sum() < played.sum()]
    if short:
        notes.append(
            f"Fewer games than the {int(played.sum())} compared: {', '.join(short)}. "
            "Their aggregates are over the games they report; --common compares all agents on the same games."
        )
    return notes


def _dominance_notes(agent: Agent, reference: Reference) -> list[str]:
    """Name the few games that dominate the mean, which is the weakness of every mean HNS."""
    normalized = metrics.hns(agent.scores, reference)
    which, shares = metrics.dominant_games(normalized)
    count = int(agent.reported.sum())
    # "Few" is at most a fifth of the games, so fewer than five games never qualify.
    if not len(which) or len(which) > count // 5:
        return []
    named = ", ".join(f"{title(GAMES[i])} {100 * share:.0f}%" for i, share in zip(which, shares, strict=True))
    rest = agent.restricted_to(~np.isin(np.arange(len(GAMES)), which))
    mean = 100 * float(metrics.mean(metrics.hns(rest.scores, reference)))
    without = f" Without {'it' if len(which) == 1 else 'them'} the mean would be {mean:.1f}%."
    subject = "One game makes up" if len(which) == 1 else f"{len(which)} of {count} games make up"
    return [f"{agent.name}: {subject} {100 * shares.sum():.0f}% of its mean HNS ({named}).{without}"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


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
    agent, reference = summary.agent, report.reference
    per_game = metrics.game_means(agent.scores)
    normalized = {name: 100 * metrics.game_means(f(agent.scores, reference)) for name, f in metrics.CRITERIA.items()}
    record = metrics.breakthroughs(agent.scores, reference)
    others = [other for other in (*report.mine, *report.others) if other is not summary]
    beside = others if len(others) <= 4 else []
    columns = [Column("game", "game"), Column("score", "score", ".1f")]
    seeded = max(agent.runs_per_game) > 1
    if seeded:
        columns += [Column("score_std", "± std", ".1f"), Column("runs", "runs", "d")]
    columns += [Column(f"{name}_percent", f"{label} %", ".2f") for name, label in CRITERION_LABELS.items()]
    columns.append(Column("breakthrough", "record"))
    columns += [Column(f"hns_percent_{other.agent.name}", f"{other.agent.name}\nHNS %", ".2f") for other in beside]
    if others:
        columns += [Column("best_other", "best other"), Column("best_other_score", "its score", ".1f")]
        columns.append(Column("rank", "rank", "d"))
    other_scores = np.stack([metrics.game_means(other.agent.scores) for other in others]) if others else None
    other_hns = [100 * metrics.hns(metrics.game_means(other.agent.scores), reference) for other in beside]
    rows: list[tuple[Cell, ...]] = []
    for i, game in enumerate(GAMES):
        if not agent.reported[i]:
            continue
        row: list[Cell] = [title(game), float(per_game[i])]
        if seeded:
            runs = agent.scores[np.isfinite(agent.scores[:, i]), i]
            row += [float(runs.std(ddof=1)) if runs.size > 1 else None, int(runs.size)]
        row += [float(values[i]) for values in normalized.values()]
        row.append(bool(record[i]))
        row += [float(values[i]) for values in other_hns]
        if other_scores is not None:
            column = other_scores[:, i]
            if np.isfinite(column).any():
                best = int(np.nanargmax(column))
                row += [others[best].agent.name, float(column[best]), 1 + int((column > per_game[i]).sum())]
            else:
                row += ["", None, 1]
        rows.append(tuple(row))
    return Table(f"games_{agent.name}", f"{agent.name}, game by game", tuple(columns), tuple(rows))
