"""Scores of an evaluation relative to random play, humans and world records, for reports."""

from __future__ import annotations

from typing import Any

from gdi.envs.names import is_atari
from gdi.evaluation.evaluator import Evaluation
from gdi.scores.games import canonical_game
from gdi.scores.metrics import normalize
from gdi.scores.reference import load_reference

NO_SCORES: dict[str, float | None] = {"hns": None, "hwrns": None, "saber": None}


def normalized_scores(evaluation: Evaluation) -> dict[str, float | None]:
    """Return HNS, HWRNS and SABER of the mean return, as fractions, or None for games other than Atari.

    They use the paper's baselines.
    """
    if not is_atari(evaluation.env):
        return NO_SCORES
    return {**normalize(canonical_game(evaluation.env), evaluation.mean, load_reference("paper"))}


def report_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return the evaluation for a log or a caller, with the normalized scores."""
    return {**evaluation.to_dict(), **normalized_scores(evaluation)}
