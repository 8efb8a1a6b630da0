"""Reads score files (CSV, JSON) and ``gdi train`` run folders as agents, with exact error messages.

CSV has one of four layouts, which the first row determines:

1. long: columns ``game`` and ``score``, optionally ``seed`` and ``agent``;
2. one row per game, one column per seed: ``game,seed_0,seed_1,...``;
3. one row per game, one column per agent: ``game,mine,baseline,...``;
4. one column per game, one row per seed, optionally with columns ``seed`` and ``agent``.

JSON is ``{"pong": 20.9}`` or ``{"pong": [20.9, 21]}``, the same under agent names, or a list of records like the
rows of long CSV.

An empty cell, ``N/A`` or JSON's ``null`` means "no score". Any other text in place of a number is an error.
"""

from gdi.scores.readers.load import LoadedAgents, load_agents

__all__ = ["LoadedAgents", "load_agents"]
