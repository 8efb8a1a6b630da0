"""Evaluation in environments of its own."""

from gdi.evaluation.evaluator import Evaluation, Evaluator

__all__ = ["Evaluation", "Evaluator"]
