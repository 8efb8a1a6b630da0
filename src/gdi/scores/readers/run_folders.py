"""Reads the last evaluation of run folders of ``gdi train``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gdi.errors import UserError
from gdi.scores.games import NON_BENCHMARK_GAMES, find_game
from gdi.scores.readers.entries import LARGEST_SCORE
from gdi.scores.tables import LARGEST_FRAMES

# Between the name of a protocol and what a run changed in it.
CHANGED = ", changed: "


@dataclass(frozen=True)
class RunScore:
    """The score of a run: the mean of its last evaluation."""

    game: str
    score: float
    frames: float
    protocol: str


def read_run(folder: Path) -> RunScore:
    """Return the last evaluation of a ``gdi train`` run folder."""
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
    game = _game(folder, settings)
    last = _last_evaluation(metrics, lines)
    if last is None:
        raise UserError(f"{folder}: no evaluation in metrics.jsonl yet.")
    score, frames = _numbers(metrics, last)
    protocol, changes = str(last.get("protocol", "")), str(last.get("changes", ""))
    return RunScore(game, score, frames, f"{protocol}{CHANGED}{changes}" if changes else protocol)


def _game(folder: Path, settings: str) -> str:
    """Return the game of a run from the text of its configuration."""
    try:
        env_id = str(json.loads(settings)["env"]["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{folder / 'config.json'}: does not say which environment the run was on.") from None
    game = find_game(env_id)
    if game is None or game in NON_BENCHMARK_GAMES:
        raise UserError(f"{folder}: its environment {env_id!r} is not one of the 57 Atari games.")
    return game


def _last_evaluation(metrics: Path, lines: Sequence[str]) -> dict[str, Any] | None:
    last: dict[str, Any] | None = None
    # Text after the last newline is a line that a running process has not finished writing.
    for number, line in enumerate(lines[:-1], 1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{metrics}: row {number}: not JSON.") from None
        if isinstance(event, dict) and event.get("kind") == "evaluation":
            last = event
    return last


def _numbers(metrics: Path, evaluation: Mapping[str, Any]) -> tuple[float, float]:
    """Return the mean and the number of frames of an evaluation."""
    try:
        score, frames = float(evaluation["mean"]), float(evaluation["frames"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UserError(f"{metrics}: its last evaluation has no number for 'mean' and 'frames'.") from None
    if not abs(score) <= LARGEST_SCORE:
        raise UserError(f"{metrics}: the mean of its last evaluation is {score}.")
    if not 1 <= frames <= LARGEST_FRAMES:
        raise UserError(f"{metrics}: the number of frames of its last evaluation is {frames}.")
    return score, frames
