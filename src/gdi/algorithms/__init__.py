"""Algorithms: π and T of a family of systems each."""

from gdi.algorithms.base import Algorithm, Loss, Transitions
from gdi.algorithms.factory import make_algorithm

__all__ = ["Algorithm", "Loss", "Transitions", "make_algorithm"]
