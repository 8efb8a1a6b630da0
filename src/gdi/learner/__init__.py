"""The operator T: losses, optimizer, and the learner that applies them to batches."""

from gdi.learner.learner import Learner

__all__ = ["Learner"]
