"""Evaluation in separate environments."""

from gdi.evaluation.evaluator import Evaluation, Evaluator
from gdi.evaluation.normalized import WITHHELD, normalized_scores, report_of

__all__ = ["WITHHELD", "Evaluation", "Evaluator", "normalized_scores", "report_of"]
