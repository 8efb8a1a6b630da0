"""The learner (T): it applies the loss and the optimizer to batches."""

from gdi.learner.learner import Learner

__all__ = ["Learner"]
