"""Atari scores, compared with humans, world records and published agents.

This package needs only NumPy, neither torch nor ALE.

>>> import gdi.scores as gs
>>> mine = gs.Agent.from_dict("mine", {"ALE/Pong-v5": [20.9, 21.0], "Breakout": [380.0, 402.0]}, frames=200e6)
>>> report = gs.judge([mine], against=gs.choose_agents("agent57,muzero"))
>>> report.mine[0].values["hwrb"]
0.0
"""

from __future__ import annotations

from gdi.scores.agents import Agent, choose_agents, published_agents
from gdi.scores.games import GAMES, canonical_game, find_game
from gdi.scores.intervals import Bootstrap, confidence_interval
from gdi.scores.metrics import (
    CRITERIA,
    STATISTICS,
    breakthroughs,
    dominant_games,
    game_means,
    game_time,
    hns,
    hwrb,
    hwrns,
    iqm,
    learning_efficiency,
    mean,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    saber,
)
from gdi.scores.readers import load_agents
from gdi.scores.reference import REFERENCES, Reference, load_reference
from gdi.scores.report import Report, judge
from gdi.scores.summaries import Summary, summarize
from gdi.scores.summary_tables import report_tables
from gdi.scores.tables import Table, render

__all__ = [
    "CRITERIA",
    "GAMES",
    "REFERENCES",
    "STATISTICS",
    "Agent",
    "Bootstrap",
    "Reference",
    "Report",
    "Summary",
    "Table",
    "breakthroughs",
    "canonical_game",
    "choose_agents",
    "confidence_interval",
    "dominant_games",
    "find_game",
    "game_means",
    "game_time",
    "hns",
    "hwrb",
    "hwrns",
    "iqm",
    "judge",
    "learning_efficiency",
    "load_agents",
    "load_reference",
    "mean",
    "median",
    "optimality_gap",
    "performance_profile",
    "probability_of_improvement",
    "published_agents",
    "render",
    "report_tables",
    "saber",
    "summarize",
]
