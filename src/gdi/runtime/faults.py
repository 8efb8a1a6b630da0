"""Faults that a run survives, and those that end it."""

from __future__ import annotations


class PartLost(Exception):
    """The process of the learner, collector, controller or parameter server is gone: go back to a checkpoint."""


class Stalled(RuntimeError):
    """Nothing has moved for too long, or cannot: the run stops and shows the first error it met."""

    def __init__(self, what: str, first_error: str = "") -> None:
        super().__init__(f"{what}. The first error:\n{first_error}" if first_error else f"{what}.")
