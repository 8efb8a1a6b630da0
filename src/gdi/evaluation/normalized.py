"""Scores of an evaluation relative to random play, humans and world records, for reports."""

from __future__ import annotations

from typing import Any

from gdi.envs.names import is_atari
from gdi.evaluation.evaluator import Evaluation
from gdi.scores.games import canonical_game
from gdi.scores.metrics import normalize
from gdi.scores.reference import load_reference

WITHHELD = "HNS, HWRNS and SABER do not apply to a changed protocol; gdi evaluate RUN --scores-anyway shows them."
NO_SCORES: dict[str, float | None] = {"hns": None, "hwrns": None, "saber": None}


def normalized_scores(evaluation: Evaluation, *, anyway: bool = False) -> dict[str, float | None]:
    """Return HNS, HWRNS and SABER of the mean return, as fractions, or None for games other than Atari.

    They use the paper's baselines. A score under a changed protocol is not comparable with them, so it has none, except
    ``anyway``.
    """
    if not is_atari(evaluation.env) or (evaluation.changes and not anyway):
        return NO_SCORES
    return {**normalize(canonical_game(evaluation.env), evaluation.mean, load_reference("paper"))}


def report_of(evaluation: Evaluation, *, anyway: bool = False) -> dict[str, Any]:
    """Return the evaluation for a log or a caller, with every return and the normalized scores."""
    scores = normalized_scores(evaluation, anyway=anyway)
    return {**evaluation.to_dict(), "returns": list(evaluation.returns), **scores}
