"""The operator T: losses, optimizer, and the learner that applies them to batches."""

from gdi.learner.learner import Diverged, Learner

__all__ = ["Diverged", "Learner"]
