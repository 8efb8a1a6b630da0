"""Reads scores from CSV, one row at a time. The first row decides which layout it is."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from gdi.errors import UserError
from gdi.scores.games import find_game
from gdi.scores.readers.entries import (
    AGENT_COLUMNS,
    GAME_COLUMNS,
    SCORE_COLUMNS,
    SEED_COLUMNS,
    Entries,
    parse_score,
)

_SEED_HEADER = re.compile(r"(seed|run|trial|score|return|rep|s|r)?[\s_#-]*\d+", re.IGNORECASE)

Row = tuple[int, list[str]]  # with the number of its line


class CsvFile:
    """A CSV file of scores; `agent` is the name of scores for which it has none."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        self.entries = Entries(agent, self._where)
        self.ignored: list[str] = []
        self._labels: Sequence[str] = ()  # of the columns, in messages

    def read(self, text: str) -> None:
        """Add all scores of the text to the entries."""
        rows = self._rows(text)
        first = next(rows, None)
        if first is None:
            raise UserError(f"{self.path}: the file has no row of scores.")
        line, header = first[0], [cell.strip() for cell in first[1]]
        self._labels = [str(number) for number in range(1, len(header) + 1)]
        game_at = _index(header, GAME_COLUMNS)
        if game_at is None and not header[0]:
            second = next(rows, None)
            rows = rows if second is None else chain((second,), rows)
            if second is not None and find_game(second[1][0]):
                game_at, header[0] = 0, "game"  # pandas writes an index of games without a name
        if game_at is not None:
            if len(header) == 1:
                raise UserError(f"{self.path}: row {line}: there is a column of games, but none of scores.")
            self._games_down(header, game_at, rows)
        elif len(header) > 1 and find_game(header[0]) and _is_number(header[1]):
            self._games_down(["game", *(f"seed_{i}" for i in range(len(header) - 1))], 0, chain((first,), rows))
        elif any(find_game(cell) for cell in header):
            self._games_across(header, line, rows)
        else:
            raise self._unknown_layout(header, line)

    def _rows(self, text: str) -> Iterator[Row]:
        """Yield the rows that are neither empty nor a comment."""
        first = next((line for line in io.StringIO(text) if line.strip() and not line.startswith("#")), "")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
        try:
            for row in reader:
                if any(row) and not row[0].startswith("#"):
                    yield reader.line_num, row
        except csv.Error as error:
            raise UserError(f"{self.path}: row {reader.line_num}: not readable as CSV: {error}.") from None

    def _unknown_layout(self, header: Sequence[str], line: int) -> UserError:
        if len(header) > 1 and any(_is_number(cell) for cell in header[1:]):
            self._game(header[0], line, 0)  # a list without a header, whose first game is misspelled
        shown = ", ".join(map(repr, header[:6])) + (", ..." if len(header) > 6 else "")
        return UserError(f"{self.path}: row {line}: no known Atari game and no column 'game' in {shown}.")

    def _games_down(self, header: Sequence[str], game_at: int, rows: Iterable[Row]) -> None:
        """Read rows of a game and its scores: a single one, or one per seed or per agent."""
        self._labels = [repr(cell) for cell in header]
        seed_at, agent_at = _index(header, SEED_COLUMNS), _index(header, AGENT_COLUMNS)
        columns = self._score_columns(header, (game_at, seed_at, agent_at))
        is_long = len(columns) == 1
        by_seed = not is_long and self._are_seeds([header[i] for i in columns])
        for line, row in self._whole(rows, len(header)):
            game = self._game(row[game_at], line, game_at)
            own = _cell(row, agent_at) or None, _cell(row, seed_at)
            for i in columns:
                score = self._score(row[i], line, i)
                if game is not None and score is not None:
                    agent, seed = own if is_long else (None, header[i]) if by_seed else (header[i], None)
                    self.entries.add(agent, game, seed, score, (line, i))

    def _score_columns(self, header: Sequence[str], others: Sequence[int | None]) -> list[int]:
        """Return the places of the columns of scores."""
        lowered = [cell.lower() for cell in header]
        # A column without a name is the row number that pandas writes.
        columns = [i for i in range(len(header)) if i not in others and header[i]]
        score_at = _index(header, SCORE_COLUMNS)
        if score_at is not None:
            self.ignored = [header[i] for i in columns if i != score_at]
            columns = [score_at]
        if not columns:
            raise UserError(f"{self.path}: there is a column of games, but none of scores.")
        doubled = next((name for i, name in enumerate(header) if lowered.index(name.lower()) != i), None)
        if doubled is not None:
            raise UserError(f"{self.path}: the column {doubled!r} appears twice: rename or drop one.")
        return columns

    def _are_seeds(self, names: Sequence[str]) -> bool:
        """Return whether the columns are seeds. Otherwise they are agents."""
        seeds = [bool(_SEED_HEADER.fullmatch(name)) for name in names]
        if any(seeds) and not all(seeds):
            like, odd = names[seeds.index(True)], names[seeds.index(False)]
            raise UserError(
                f"{self.path}: column {like!r} looks like a seed and column {odd!r} like an agent: use only one kind."
            )
        return all(seeds)

    def _games_across(self, header: Sequence[str], first_line: int, rows: Iterable[Row]) -> None:
        """Read rows of one seed, with a column per game."""
        seed_at, agent_at = _index(header, SEED_COLUMNS), _index(header, AGENT_COLUMNS)
        games: dict[int, str] = {}
        for i, name in enumerate(header):
            game = None if i in (seed_at, agent_at) else self._game(name, first_line, i)
            if game in games.values():
                raise UserError(f"{self._where(first_line, i)}: {game} is given twice.")
            if game is not None:
                games[i] = game
        self._labels = [repr(cell) for cell in header]
        for line, row in self._whole(rows, len(header)):
            agent = _cell(row, agent_at) or None
            seed = f"row {line}" if seed_at is None else _cell(row, seed_at)
            for i, game in games.items():
                score = self._score(row[i], line, i)
                if score is not None:
                    self.entries.add(agent, game, seed, score, (line, i))

    def _whole(self, rows: Iterable[Row], width: int) -> Iterator[Row]:
        """Yield the rows. A row of another width is an error."""
        for line, row in rows:
            if len(row) != width:
                raise UserError(f"{self.path}: row {line}: {len(row)} cells where the first row has {width}.")
            yield line, row

    def _game(self, name: str, line: int, column: int) -> str | None:
        try:
            return self.entries.game(name)
        except UserError as error:
            raise UserError(f"{self._where(line, column)}: {error}") from None

    def _score(self, cell: str, line: int, column: int) -> float | None:
        try:
            return parse_score(cell)
        except UserError as error:
            raise UserError(f"{self._where(line, column)}: {error}") from None

    def _where(self, line: int, column: int) -> str:
        return f"{self.path}: row {line}, column {self._labels[column]}"


def _cell(row: Sequence[str], column: int | None) -> str | None:
    return None if column is None else row[column].strip()


def _index(header: Sequence[str], names: Sequence[str]) -> int | None:
    lowered = [cell.lower() for cell in header]
    return next((lowered.index(name) for name in names if name in lowered), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
