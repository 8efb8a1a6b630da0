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

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gdi.errors import UserError
from gdi.scores.agents import Agent, score_matrix
from gdi.scores.games import NON_BENCHMARK_GAMES, find_game, suggest

GAME_COLUMNS = ("game", "games", "env", "env_id", "environment", "task", "rom")
SCORE_COLUMNS = ("score", "return", "reward", "mean", "value")
SEED_COLUMNS = ("seed", "run", "trial")
AGENT_COLUMNS = ("agent", "algorithm", "algo", "method")
MISSING = ("", "n/a", "na", "-")

_SEED_HEADER = re.compile(r"(seed|run|trial|score|return|rep|s|r)?[\s_#-]*\d+", re.IGNORECASE)


# Between the name of a protocol and what a run changed in it.
CHANGED = ", changed: "


@dataclass(frozen=True)
class Entry:
    """One score with the place it was read from; `agent` is None if the file does not name one."""

    agent: str | None
    game: str
    seed: str | None
    score: float
    where: str


@dataclass(frozen=True)
class LoadedAgents:
    """The agents of all inputs, and remarks for the reader of the report."""

    agents: tuple[Agent, ...]
    notes: tuple[str, ...]


def load_agents(inputs: Sequence[str], frames: float | None = None, *, mix_protocols: bool = False) -> LoadedAgents:
    """Read files and run folders.

    Raise UserError if protocols of runs differ, or were changed, unless ``mix_protocols``.
    Each file is an agent named after it. Run folders together are the agent ``runs``. ``NAME=PATH`` names the agent,
    and inputs with the same name are pooled as further seeds.
    """
    runs: dict[str, dict[str, list[float]]] = {}
    frames_seen: dict[str, set[float]] = {}
    protocols: dict[str, set[str]] = {}
    notes: list[str] = []
    for given in inputs:
        name, path = _split_name(given)
        if path.is_dir():
            entry, run_frames, protocol = _read_run(path)
            agent = name or "runs"
            protocols.setdefault(agent, set()).add(protocol or "unknown")
            runs.setdefault(agent, {}).setdefault(entry.game, []).append(entry.score)
            frames_seen.setdefault(agent, set()).add(run_frames)
            continue
        entries, outside, ignored = _read_file(path)
        if outside:
            notes.append(f"{path}: dropped {', '.join(outside)}: not among the benchmark's 57 games.")
        if ignored:
            notes.append(f"{path}: only the score column is read. Ignored: {', '.join(ignored)}.")
        if not entries:
            raise UserError(
                f"{path} contains no score." if not outside else f"{path} contains none of the benchmark's 57 games."
            )
        for agent, games in _by_agent(entries, name or path.stem).items():
            for game, scores in games.items():
                runs.setdefault(agent, {}).setdefault(game, []).extend(scores)
    agents = []
    for agent, games in runs.items():
        seen = frames_seen.get(agent, set())
        if frames is None and len(seen) > 1:
            notes.append(f"{agent}: its runs have different numbers of frames. The largest is used.")
        agents.append(Agent(agent, score_matrix(games), frames if frames is not None else max(seen, default=None)))
    if not mix_protocols:
        _check_protocols(protocols)
    for agent, names in protocols.items():
        mixed = ": scores of different protocols are not comparable" if len(names) > 1 else ""
        notes.append(f"{agent}: protocol {', '.join(sorted(names))}{mixed}.")
    return LoadedAgents(tuple(agents), tuple(notes))


def _check_protocols(protocols: dict[str, set[str]]) -> None:
    """Raise UserError if scores were made under different protocols, or under none of the published ones."""
    found = sorted(set().union(*protocols.values()))
    changed = [name for name in found if CHANGED in name]
    if changed:
        raise UserError(
            f"a run has the protocol {changed[0]}, so its normalized scores mean little: drop it, or add "
            "--mix-protocols."
        )
    if len(found) > 1:
        raise UserError(
            f"these runs have the protocols {', '.join(found)}, whose scores are not comparable: judge them one by "
            "one, or add --mix-protocols."
        )


def _split_name(given: str) -> tuple[str | None, Path]:
    name, equals, rest = given.partition("=")
    if equals and name and rest and not Path(given).exists():
        return name, Path(rest)
    return None, Path(given)


def _by_agent(entries: Sequence[Entry], default: str) -> dict[str, dict[str, list[float]]]:
    """Group scores by agent and game; a duplicate for the same agent and seed is an error."""
    seen: dict[tuple[str, str, str | None], str] = {}
    result: dict[str, dict[str, list[float]]] = {}
    for entry in entries:
        agent = entry.agent or default
        key = (agent, entry.game, entry.seed)
        if key in seen:
            detail = "add a 'seed' column if these are seeds" if entry.seed is None else f"both for seed {entry.seed}"
            raise UserError(f"{entry.where}: {entry.game} is given twice, first at {_short(seen[key])} ({detail}).")
        seen[key] = entry.where
        result.setdefault(agent, {}).setdefault(entry.game, []).append(entry.score)
    return result


def _short(where: str) -> str:
    """Shorten a place to what differs from the other place in the same file."""
    return where.split(": ", 1)[-1]


def _read_file(path: Path) -> tuple[list[Entry], list[str], list[str]]:
    """Return a file's scores, the dropped games that are not among the 57, and the ignored columns."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file or run folder.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file: use CSV or JSON in UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}.") from None
    if not text.strip():
        raise UserError(f"{path}: the file is empty.")
    reader = _Json(path) if path.suffix.lower() == ".json" or text.lstrip()[0] in "{[" else _Csv(path)
    return reader.read(text), reader.outside, reader.ignored


class _Reader:
    """The common code for CSV and JSON.

    It checks games and numbers, and collects games outside the benchmark.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outside: list[str] = []
        self.ignored: list[str] = []

    def game(self, name: str, where: str) -> str | None:
        """Return our name, or None for an Atari game that is not among the 57, which is recorded."""
        found = find_game(name)
        if found is None:
            raise UserError(f"{where}: unknown Atari game {name!r}.{suggest(name)}")
        if found in NON_BENCHMARK_GAMES:
            if found not in self.outside:
                self.outside.append(found)
            return None
        return found

    def number(self, text: str, where: str) -> float | None:
        if text.strip().lower() in MISSING:
            return None
        try:
            value = float(text)
        except ValueError:
            hint = (
                " (write it without thousands separators)" if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text) else ""
            )
            raise UserError(f"{where}: {text!r} is not a number{hint}.") from None
        if not math.isfinite(value):
            raise UserError(f"{where}: {text!r} is NaN or infinite: leave the cell empty if there is no score.")
        return value


class _Csv(_Reader):
    def read(self, text: str) -> list[Entry]:
        first = next(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
        delimiter = max(",;\t", key=first.count)
        reader = csv.reader(text.splitlines(), delimiter=delimiter)
        try:
            rows = [(reader.line_num, row) for row in reader if any(row) and not row[0].startswith("#")]
        except csv.Error as error:
            raise UserError(f"{self.path}: row {reader.line_num}: not readable as CSV: {error}.") from None
        header = [cell.strip() for cell in rows[0][1]]
        lowered = [cell.lower() for cell in header]
        game_at = _index(lowered, GAME_COLUMNS)
        if game_at is None and not header[0] and len(rows) > 1 and find_game(rows[1][1][0]):
            game_at, header[0] = 0, "game"  # pandas writes an index of games without a name
        if game_at is not None:
            if len(header) == 1:
                raise UserError(f"{self.path}: row {rows[0][0]}: there is a column of games, but none of scores.")
            return self._games_down(header, game_at, rows[1:])
        if any(find_game(cell) for cell in header[:1]) and len(header) > 1 and _is_number(header[1]):
            return self._games_down(["game", *(f"seed_{i}" for i in range(len(header) - 1))], 0, rows)
        known = sum(find_game(cell) is not None for cell in header)
        if known:
            return self._games_across(header, rows)
        if len(header) > 1 and any(_is_number(cell) for cell in header[1:]):
            # This is a list without a header, and its first game is misspelled.
            self.game(header[0], f"{self.path}: row {rows[0][0]}, column 1")
        shown = ", ".join(map(repr, header[:6])) + (", ..." if len(header) > 6 else "")
        raise UserError(f"{self.path}: row {rows[0][0]}: no known Atari game and no column 'game' in {shown}.")

    def _games_down(self, header: list[str], game_at: int, rows: list[tuple[int, list[str]]]) -> list[Entry]:
        lowered = [cell.lower() for cell in header]
        seed_at, agent_at = _index(lowered, SEED_COLUMNS), _index(lowered, AGENT_COLUMNS)
        # A column without a name is the row number that pandas writes.
        values = [i for i in range(len(header)) if i not in (game_at, seed_at, agent_at) and header[i]]
        score_at = _index(lowered, SCORE_COLUMNS)
        if score_at is not None:
            self.ignored = [header[i] for i in values if i != score_at]
            values = [score_at]
        elif len(values) == 1:
            score_at = values[0]
        if not values:
            raise UserError(f"{self.path}: there is a column of games, but none of scores.")
        doubled = next((name for i, name in enumerate(header) if lowered.index(name.lower()) != i), None)
        if doubled is not None:
            raise UserError(f"{self.path}: the column {doubled!r} appears twice: rename or drop one.")
        long_form = values == [score_at]
        seeds = [bool(_SEED_HEADER.fullmatch(header[i])) for i in values]
        if not long_form and any(seeds) and not all(seeds):
            odd = header[values[seeds.index(False)]]
            like = header[values[seeds.index(True)]]
            raise UserError(
                f"{self.path}: column {like!r} looks like a seed and column {odd!r} like an agent: use only one kind."
            )
        entries = []
        for line, row in rows:
            if len(row) != len(header):
                raise UserError(f"{self.path}: row {line}: {len(row)} cells where the first row has {len(header)}.")
            game = self.game(row[game_at], f"{self.path}: row {line}, column {header[game_at]!r}")
            for i in values:
                where = f"{self.path}: row {line}, column {header[i]!r}"
                score = self.number(row[i], where)
                if game is None or score is None:
                    continue
                if long_form:
                    agent = (row[agent_at].strip() or None) if agent_at is not None else None
                    seed = row[seed_at].strip() if seed_at is not None else None
                else:
                    agent, seed = (None, header[i]) if all(seeds) else (header[i], None)
                entries.append(Entry(agent, game, seed, score, where))
        return entries

    def _games_across(self, header: list[str], rows: list[tuple[int, list[str]]]) -> list[Entry]:
        lowered = [cell.lower() for cell in header]
        seed_at, agent_at = _index(lowered, SEED_COLUMNS), _index(lowered, AGENT_COLUMNS)
        first_row = rows[0][0]
        columns: dict[int, str] = {}
        for i, name in enumerate(header):
            if i in (seed_at, agent_at):
                continue
            game = self.game(name, f"{self.path}: row {first_row}, column {i + 1}")
            if game is None:
                continue
            if game in columns.values():
                raise UserError(f"{self.path}: row {first_row}, column {i + 1}: {game} is given twice.")
            columns[i] = game
        entries = []
        for line, row in rows[1:]:
            if len(row) != len(header):
                raise UserError(f"{self.path}: row {line}: {len(row)} cells where the first row has {len(header)}.")
            agent = (row[agent_at].strip() or None) if agent_at is not None else None
            seed = row[seed_at].strip() if seed_at is not None else f"row {line}"
            for i, game in columns.items():
                where = f"{self.path}: row {line}, column {header[i]!r}"
                score = self.number(row[i], where)
                if score is not None:
                    entries.append(Entry(agent, game, seed, score, where))
        return entries


class _Json(_Reader):
    def read(self, text: str) -> list[Entry]:
        try:
            content = json.loads(text, object_pairs_hook=self._no_doubles)
        except json.JSONDecodeError as error:
            raise UserError(f"{self.path}: row {error.lineno}, column {error.colno}: not JSON: {error.msg}.") from None
        except RecursionError:
            raise UserError(f"{self.path}: nested too deeply to be scores.") from None
        if isinstance(content, list):
            return [entry for number, record in enumerate(content, 1) for entry in self._record(number, record)]
        if not isinstance(content, dict):
            raise UserError(f"{self.path}: expected an object or a list, found {type(content).__name__}.")
        if content and all(isinstance(value, dict) for value in content.values()):
            return [e for agent, scores in content.items() for e in self._scores(str(agent), scores)]
        return self._scores(None, content)

    def _no_doubles(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise UserError(f"{self.path}: {key!r} is given twice.")
            result[key] = value
        return result

    def _scores(self, agent: str | None, scores: dict[str, Any]) -> list[Entry]:
        entries: list[Entry] = []
        if scores and not any(find_game(name) for name in scores):
            raise UserError(f"{self.path}: no known Atari game in {', '.join(map(repr, list(scores)[:6]))}.")
        for name, value in scores.items():
            game = self.game(name, f"{self.path}: {agent or 'top level'}")
            values = value if isinstance(value, list) else [value]
            for seed, item in enumerate(values):
                where = f"{self.path}: {name!r}" + (f", seed {seed}" if isinstance(value, list) else "")
                score = self._number(item, where)
                if game is not None and score is not None:
                    entries.append(Entry(agent, game, str(seed) if isinstance(value, list) else None, score, where))
        return entries

    def _record(self, number: int, record: Any) -> list[Entry]:
        where = f"{self.path}: record {number}"
        if not isinstance(record, dict):
            raise UserError(f"{where}: expected an object with 'game' and 'score', found {record!r}.")
        keys = {str(key).lower(): key for key in record}
        game_key = next((keys[key] for key in GAME_COLUMNS if key in keys), None)
        score_key = next((keys[key] for key in SCORE_COLUMNS if key in keys), None)
        if game_key is None or score_key is None:
            raise UserError(f"{where}: needs 'game' and 'score', has {', '.join(map(repr, record))}.")
        game = self.game(str(record[game_key]), where)
        score = self._number(record[score_key], f"{where}, {score_key!r}")
        if game is None or score is None:
            return []
        agent = next((record[keys[key]] for key in AGENT_COLUMNS if key in keys), None)
        seed = next((record[keys[key]] for key in SEED_COLUMNS if key in keys), None)
        return [Entry(None if agent is None else str(agent), game, None if seed is None else str(seed), score, where)]

    def _number(self, item: Any, where: str) -> float | None:
        if item is None:
            return None
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            if isinstance(item, str) and item.strip().lower() in MISSING:
                return None
            raise UserError(f"{where}: {item!r} is not a number.")
        return self.number(repr(item), where)


def _index(header: list[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_run(folder: Path) -> tuple[Entry, float, str]:
    """Return the last evaluation of a ``gdi train`` run folder, its number of frames, and its protocol."""
    config, metrics = folder / "config.json", folder / "metrics.jsonl"
    if not config.is_file() or not metrics.is_file():
        raise UserError(
            f"{folder} is a directory, and not a run folder of `gdi train` (those have config.json and metrics.jsonl)."
        )
    try:
        lines = metrics.read_text(encoding="utf-8").split("\n")
        settings = config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{folder} cannot be read: {error}.") from None
    try:
        env_id = str(json.loads(settings)["env"]["id"])
    except (json.JSONDecodeError, KeyError, TypeError):
        raise UserError(f"{config}: does not say which environment the run was on.") from None
    game = find_game(env_id)
    if game is None or game in NON_BENCHMARK_GAMES:
        raise UserError(f"{folder}: its environment {env_id!r} is not one of the 57 Atari games.")
    last: dict[str, Any] | None = None
    # Text after the last newline is a line that a running process has not finished writing.
    for number, line in enumerate(lines[:-1], 1):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            raise UserError(f"{metrics}: row {number}: not JSON.") from None
        if isinstance(event, dict) and event.get("kind") == "evaluation":
            last = event
    if last is None:
        raise UserError(f"{folder}: no evaluation in metrics.jsonl yet.")
    try:
        score, frames = float(last["mean"]), float(last["frames"])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{metrics}: its last evaluation has no number for 'mean' and 'frames'.") from None
    if not math.isfinite(score):
        raise UserError(f"{metrics}: the mean of its last evaluation is {score}.")
    protocol, changes = str(last.get("protocol", "")), str(last.get("changes", ""))
    if changes:
        protocol = f"{protocol}{CHANGED}{changes}"
    return Entry(None, game, None, score, str(folder)), frames, protocol
