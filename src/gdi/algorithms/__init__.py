"""Algorithms: each defines the policy (π) and the loss (of T) of one family of systems."""

from gdi.algorithms.base import Algorithm, Loss, Transitions
from gdi.algorithms.factory import make_algorithm

__all__ = ["Algorithm", "Loss", "Transitions", "make_algorithm"]
