"""The scores of one file by agent and game, a few bytes each, and the checks that all files share."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from gdi.errors import UserError
from gdi.scores.games import NON_BENCHMARK_GAMES, find_game, suggest

GAME_COLUMNS = ("game", "games", "env", "env_id", "environment", "task", "rom")
SCORE_COLUMNS = ("score", "return", "reward", "mean", "value")
SEED_COLUMNS = ("seed", "run", "trial")
AGENT_COLUMNS = ("agent", "algorithm", "algo", "method")
MISSING = ("", "n/a", "na", "-")
# Far above any game's record.
LARGEST_SCORE = 1e15


@dataclass
class _Scores:
    """One agent's scores of one game, with the seed and the place of each."""

    values: array[float] = field(default_factory=lambda: array("d"))
    rows: array[int] = field(default_factory=lambda: array("q"))
    columns: array[int] = field(default_factory=lambda: array("q"))
    seeds: dict[str | None, None] = field(default_factory=dict)  # an ordered set


class Entries:
    """The scores of one file.

    `agent` is the name of scores for which the file has none. `where` returns the text of a place, which is a row and
    a column.
    """

    def __init__(self, agent: str, where: Callable[[int, int], str]) -> None:
        self.outside: list[str] = []  # games that are not among the 57
        self._agent = agent
        self._where = where
        self._scores: dict[str, dict[str, _Scores]] = {}
        self._by_spelling: dict[str | None, dict[str, _Scores]] = {}
        self._games: dict[str, str | None] = {}
        self._seeds: dict[str, str] = {}

    def game(self, name: str) -> str | None:
        """Return our name of a game, or None if it is not among the 57, which is recorded."""
        if name not in self._games:
            found = find_game(name)
            if found is None:
                raise UserError(f"unknown Atari game {name!r}.{suggest(name)}")
            if found in NON_BENCHMARK_GAMES and found not in self.outside:
                self.outside.append(found)
            self._games[name] = None if found in NON_BENCHMARK_GAMES else found
        return self._games[name]

    def add(self, agent: str | None, game: str, seed: str | None, score: float, place: tuple[int, int]) -> None:
        """Add a score. A second one of the same agent, game and seed is an error."""
        games = self._by_spelling.get(agent)
        if games is None:
            games = self._scores.setdefault(printable_name(agent or self._agent), {})
            self._by_spelling[agent] = games
        scores = games.get(game)
        if scores is None:
            scores = games[game] = _Scores()
        if seed is not None:  # equal seeds of many games are one text in memory
            seed = self._seeds.setdefault(seed, seed)
        if seed in scores.seeds:
            raise self._given_twice(game, seed, scores, place)
        scores.seeds[seed] = None
        scores.values.append(score)
        scores.rows.append(place[0])
        scores.columns.append(place[1])

    def by_agent(self) -> dict[str, dict[str, array[float]]]:
        """Return the scores by agent and game."""
        return {agent: {game: found.values for game, found in games.items()} for agent, games in self._scores.items()}

    def _given_twice(self, game: str, seed: str | None, scores: _Scores, place: tuple[int, int]) -> UserError:
        detail = "add a 'seed' column if these are seeds" if seed is None else f"both for seed {seed}"
        first = list(scores.seeds).index(seed)
        before = self._where(scores.rows[first], scores.columns[first])
        # Both places are in the same file, so its name is given once.
        return UserError(
            f"{self._where(*place)}: {game} is given twice, first at {before.split(': ', 1)[-1]} ({detail})."
        )


def parse_score(text: str) -> float | None:
    """Return a score, or None for one of the texts that mean "no score"."""
    try:
        value = float(text)
    except ValueError:
        if text.strip().lower() in MISSING:
            return None
        thousands = re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text)
        hint = " (write it without thousands separators)" if thousands else ""
        raise UserError(f"{text[:60]!r} is not a number{hint}.") from None
    if not math.isfinite(value):
        raise UserError(f"{text[:60]!r} is NaN or infinite: leave the cell empty if there is no score.")
    if abs(value) > LARGEST_SCORE:
        raise UserError(f"{text[:60]!r} is not a score: the largest is {LARGEST_SCORE:.0e}.")
    return value


def printable_name(name: str) -> str:
    """Return a name of at most 80 characters that does not steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in name)[:80]
