"""Exceptions for lost processes, which a run survives, and for stalls, which end it."""

from __future__ import annotations


class ProcessLostError(Exception):
    """A lost learner, collector, controller or parameter server: the run restarts from a checkpoint."""


class StallError(RuntimeError):
    """A run that has made no progress for too long, or cannot make any; it shows the first error."""

    def __init__(self, what: str, first_error: str = "") -> None:
        super().__init__(f"{what}. The first error:\n{first_error}" if first_error else f"{what}.")
