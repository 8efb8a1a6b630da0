"""The tables of scores, efficiency, health and coverage as Markdown; each function makes one section."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.minatar_sweep.agents import AGENTS, GAMES
from benchmarks.minatar_sweep.claims import GDI
from benchmarks.minatar_sweep.records import Row, run_of
from benchmarks.minatar_sweep.stats import TARGET, normalizer
from gdi.scores import metrics
from gdi.scores.runs import Run, TimeToTarget, estimate, head_to_head, score_matrix, time_to_target

NONE = "–"
HEALTH = {
    "entropy": "entropy",
    "ratio_mean": "mean ratio",
    "ratio_clip_fraction": "ratios clipped",
    "advantage_scale": "A scale",
    "value_error": "value error",
    "parameter_lag_updates": "lag",
}


def section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def label(agent: str) -> str:
    return AGENTS[agent].label


def number(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else NONE


def agents_in(runs: Iterable[Run]) -> list[str]:
    """Return the agents that have a run, in the benchmark's order."""
    found = {run.agent for run in runs}
    return [name for name in AGENTS if name in found]


def games_in(runs: Iterable[Run]) -> list[str]:
    """Return the games that have a run, in the benchmark's order."""
    found = {run.game for run in runs}
    return [game for game in GAMES if game in found]


def steps_text(runs: Iterable[Run]) -> str:
    return " or ".join(f"{steps:,}" for steps in sorted({run.training_steps for run in runs}))


def coverage(runs: Sequence[Run]) -> str:
    """Return how many seeds each cell has, and how many a full sweep has."""
    keys = [(run.agent, run.game) for run in runs]
    rows = []
    for name, agent in AGENTS.items():
        counts = [keys.count((name, game)) for game in GAMES]
        rows.append([agent.label, *(str(n) if n >= agent.seeds else f"{n} of {agent.seeds}" for n in counts)])
    missing = sum(max(0, agent.seeds - keys.count((name, game))) for name, agent in AGENTS.items() for game in GAMES)
    told = f"{missing} runs of a full sweep are missing." if missing else "No run of a full sweep is missing."
    return section("Seeds", table(["agent", *GAMES], rows), told)


def scores(runs: Sequence[Run]) -> str:
    games = games_in(runs)
    rows = []
    for agent in agents_in(runs):
        matrix = score_matrix(runs, agent, games)
        rows.append([label(agent), *(estimate(metrics.mean, matrix[:, [i]]).text(1) for i in range(len(games)))])
    told = "The mean over seeds of each run's last evaluation (32 episodes), with 95% bootstrap intervals over seeds."
    return section("Final scores", told, table(["agent", *games], rows))


def aggregates(runs: Sequence[Run]) -> str:
    title, games = "Over all games", games_in(runs)
    divisor = normalizer(runs, games)
    if not np.isfinite(divisor).any():
        return section(
            title, f"Not computed: scores are normalized by {label('dqn')}, which has no score to divide by."
        )
    rows = []
    for agent in agents_in(runs):
        matrix = score_matrix(runs, agent, games) / divisor
        cells = [estimate(statistic, matrix).text() for statistic in (metrics.iqm, metrics.mean, metrics.median)]
        has = np.isfinite(matrix)
        rows.append([label(agent), *cells, str(has.any(axis=0).sum()), str(has.sum())])
    told = (
        "Scores are divided by DQN's mean final score in the same game, so 1 is DQN. IQM is the interquartile mean "
        "over runs and games."
    )
    parts = [told, table(["agent", "IQM", "mean", "median", "games", "runs"], rows)]
    left_out = [game for game, value in zip(games, divisor, strict=True) if not np.isfinite(value)]
    if left_out:
        parts.append(f"Left out, because DQN has no score above 0 there to divide by: {', '.join(left_out)}.")
    return section(title, *parts)


def against_peers(runs: Sequence[Run]) -> str:
    """Compare GDI's agents with each peer, game by game."""
    games = games_in(runs)
    rows = []
    for agent in (name for name in agents_in(runs) if name in GDI):
        for peer in (name for name in agents_in(runs) if AGENTS[name].is_peer):
            found = [head_to_head(runs, agent, peer, game) for game in games]
            cells = [f"{one.verdict}: {one.difference.text(1)}" for one in found]
            good = sum(one.verdict in ("ahead", "tied") for one in found)
            rows.append([f"{label(agent)} against {label(peer)}", *cells, f"{good} of {len(games)}"])
    told = (
        "The difference of the mean final scores, with its 95% bootstrap interval over seeds. An agent is ahead if the "
        "whole interval is above 0, behind if it is below 0, and tied otherwise."
    )
    return section("Game by game against the peers", told, table(["pair", *games, "ahead or tied"], rows))


def efficiency(runs: Sequence[Run]) -> str:
    """Return steps and wall-clock time to PPO's final score."""
    title = "Steps and time to PPO's final score"
    targets = dict(zip(games_in(runs), metrics.game_means(score_matrix(runs, TARGET, games_in(runs))), strict=True))
    targets = {game: float(target) for game, target in targets.items() if math.isfinite(target)}
    if not targets:
        return section(title, f"Not computed: {label(TARGET)} has no runs.")
    found = {
        agent: [time_to_target(runs, agent, game, target) for game, target in targets.items()]
        for agent in agents_in(runs)
    }
    header = ["agent", *(f"{game} ({target:.1f})" for game, target in targets.items())]
    steps = [
        [label(agent), *(format_time_to_target(cell, seconds=False) for cell in cells)]
        for agent, cells in found.items()
    ]
    seconds = [
        [label(agent), *(format_time_to_target(cell, seconds=True) for cell in cells)] for agent, cells in found.items()
    ]
    return section(
        title,
        "The target, in brackets, is the mean of PPO's final scores. A run reaches it with its first evaluation that "
        "is at least as good. The table has the median over an agent's runs, and how many of them reach it.",
        table(header, steps),
        "The same in wall-clock of one core, including evaluations. Two runs trained at once, so this is rough.",
        table(header, seconds),
    )


def format_time_to_target(found: TimeToTarget | None, *, seconds: bool) -> str:
    """Format a time: ``300k (5 of 5)``, ``151 s (5 of 5)`` or ``not reached (1 of 5)``."""
    if found is None:
        return NONE
    if math.isinf(found.steps):
        text = "not reached"
    else:
        text = f"{found.seconds:,.0f} s" if seconds else f"{found.steps / 1000:,.0f}k"
    return f"{text} ({found.reached} of {found.runs})"


def health(rows: Sequence[Row]) -> str:
    """Return the learners' health at the end of training, from the last row of each run."""
    last: dict[tuple[str, tuple[str, int]], Row] = {}
    for row in sorted(rows, key=lambda row: int(row["steps"])):
        last[row["agent"], run_of(row)] = row
    lines = []
    for agent in AGENTS:
        own = [row for (name, _), row in last.items() if name == agent]
        if not own:
            continue
        cells = []
        for name in HEALTH:
            values = [value for row in own if (value := health_value(row, name)) is not None]
            cells.append(f"{np.mean(values):.3g} ({min(values):.3g} to {max(values):.3g})" if values else NONE)
        skipped = sum(int(float(row["skipped_updates"])) for row in own)
        lines.append([label(agent), *cells, str(skipped), str(len(own))])
    if not lines:
        return section("Health at the end", "No GDI agent has runs.")
    return section(
        "Health at the end",
        "The mean over runs of the last log line, with the smallest and largest in brackets. Value error is the mean "
        "V-trace target minus the mean V. Skipped counts the NaN or infinite updates of all runs.",
        table(["agent", *HEALTH.values(), "skipped", "runs"], lines),
    )


def health_value(row: Row, name: str) -> float | None:
    """Return a number from a health row, or None if the run logged none."""
    if name == "value_error":
        target, value = health_value(row, "value_target_mean"), health_value(row, "value_mean")
        return None if target is None or value is None else target - value
    return float(row[name]) if row[name] else None
