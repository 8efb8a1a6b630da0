"""Evaluation in separate environments."""

from gdi.evaluation.evaluator import Evaluation, Evaluator
from gdi.evaluation.normalized import normalized_scores, report_of

__all__ = ["Evaluation", "Evaluator", "normalized_scores", "report_of"]
