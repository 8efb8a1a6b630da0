"""Reads scores from JSON: an object of games, the same under agent names, or a list of records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gdi.errors import UserError
from gdi.scores.games import find_game
from gdi.scores.readers.entries import (
    AGENT_COLUMNS,
    GAME_COLUMNS,
    MISSING,
    SCORE_COLUMNS,
    SEED_COLUMNS,
    Entries,
    parse_score,
)


class JsonFile:
    """A JSON file of scores; `agent` is the name of scores for which it has none."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        self.entries = Entries(agent, self._where)
        self.ignored: list[str] = []
        self._names: list[str] = []  # of the games in the order of the file, if it is not a list of records

    def read(self, text: str) -> None:
        """Add all scores of the text to the entries."""
        content = self._parse(text)
        if isinstance(content, list):
            for number, record in enumerate(content, 1):
                self._read_record(number, record)
        elif not isinstance(content, dict):
            raise UserError(f"{self.path}: expected an object or a list, found {type(content).__name__}.")
        elif content and all(isinstance(value, dict) for value in content.values()):
            for agent, scores in content.items():
                self._read_games(str(agent), scores)
        else:
            self._read_games(None, content)

    def _parse(self, text: str) -> Any:
        try:
            return json.loads(text, object_pairs_hook=self._no_doubles)
        except json.JSONDecodeError as error:
            raise UserError(f"{self.path}: row {error.lineno}, column {error.colno}: not JSON: {error.msg}.") from None
        except ValueError as error:  # a number of thousands of digits
            raise UserError(f"{self.path}: not JSON: {str(error)[:60]}.") from None
        except RecursionError:
            raise UserError(f"{self.path}: nested too deeply to be scores.") from None

    def _no_doubles(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            doubled = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise UserError(f"{self.path}: {doubled!r} is given twice.")
        return result

    def _read_games(self, agent: str | None, scores: dict[str, Any]) -> None:
        """Read one agent's games, each with one score or a list with one per seed."""
        if scores and not any(find_game(name) for name in scores):
            raise UserError(f"{self.path}: no known Atari game in {', '.join(map(repr, list(scores)[:6]))}.")
        for name, value in scores.items():
            game = self._game(name, agent or "top level")
            row = len(self._names)
            self._names.append(name)
            is_list = isinstance(value, list)
            for seed, item in enumerate(value if is_list else [value]):
                place = (row, seed if is_list else -1)
                score = self._score(item, place)
                if game is not None and score is not None:
                    self.entries.add(agent, game, str(seed) if is_list else None, score, place)

    def _read_record(self, number: int, record: Any) -> None:
        """Read a record like a row of long CSV."""
        where = f"record {number}"
        if not isinstance(record, dict):
            raise UserError(f"{self.path}: {where}: expected an object with 'game' and 'score', found {record!r}.")
        lowered = {str(key).lower(): value for key, value in record.items()}
        game_key, score_key = _first(lowered, GAME_COLUMNS), _first(lowered, SCORE_COLUMNS)
        if game_key is None or score_key is None:
            raise UserError(f"{self.path}: {where}: needs 'game' and 'score', has {', '.join(map(repr, record))}.")
        game = self._game(str(lowered[game_key]), where)
        score = self._score(lowered[score_key], (number, -1), f", {score_key!r}")
        if game is not None and score is not None:
            agent, seed = (_text(lowered, _first(lowered, keys)) for keys in (AGENT_COLUMNS, SEED_COLUMNS))
            self.entries.add(agent, game, seed, score, (number, -1))

    def _game(self, name: str, where: str) -> str | None:
        try:
            return self.entries.game(name)
        except UserError as error:
            raise UserError(f"{self.path}: {where}: {error}") from None

    def _score(self, item: Any, place: tuple[int, int], detail: str = "") -> float | None:
        try:
            return _number(item)
        except UserError as error:
            raise UserError(f"{self._where(*place)}{detail}: {error}") from None

    def _where(self, row: int, seed: int) -> str:
        """Return the place of a record, or of a game's name and its seed if there are several."""
        what = repr(self._names[row]) if self._names else f"record {row}"
        return f"{self.path}: {what}" + (f", seed {seed}" if seed >= 0 else "")


def _number(item: Any) -> float | None:
    if item is None:
        return None
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        if isinstance(item, str) and item.strip().lower() in MISSING:
            return None
        raise UserError(f"{repr(item)[:60]} is not a number.")
    return parse_score(repr(item))


def _first(record: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in record), None)


def _text(record: dict[str, Any], key: str | None) -> str | None:
    return None if key is None or record[key] is None else str(record[key])
