"""An evaluation beside random play, humans and world records: for whoever reports it, not for who plays it."""

from __future__ import annotations

from typing import Any

from gdi.envs.names import is_atari
from gdi.evaluation.evaluator import Evaluation
from gdi.scores.games import canonical_game
from gdi.scores.metrics import normalise
from gdi.scores.reference import load_reference

NO_SCORES: dict[str, float | None] = {"hns": None, "hwrns": None, "saber": None}


def normalized_scores(evaluation: Evaluation) -> dict[str, float | None]:
    """HNS, HWRNS and SABER of the mean return, as fractions with the paper's baselines; None outside Atari."""
    if not is_atari(evaluation.env):
        return NO_SCORES
    return {**normalise(canonical_game(evaluation.env), evaluation.mean, load_reference("paper"))}


def report_of(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as a log or a caller gets it: its numbers, and the normalized scores."""
    return {**evaluation.to_dict(), **normalized_scores(evaluation)}
