"""The meaning of Ray's errors for a run."""

from __future__ import annotations

from ray.exceptions import (
    ActorUnschedulableError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
)

from gdi.errors import DivergenceError, EnvironmentFaultError, UserError
from gdi.learner.group import LearnerGroupError
from gdi.runtime.exceptions import ProcessLostError

LINE_LENGTH = 160
LOSSES = (RayActorError, ObjectLostError, OutOfMemoryError, NodeDiedError, ActorUnschedulableError, LearnerGroupError)


def describe_error(error: Exception) -> str:
    """Return the remote traceback, or Ray's description of a process's death."""
    return str(error) if isinstance(error, RayTaskError) else f"{type(error).__name__}: {error}"


def one_line(why: str) -> str:
    """Return the last line of an error, shortened for a log, because Ray's explanations are long."""
    line = why.strip().splitlines()[-1]
    return line if len(line) <= LINE_LENGTH else f"{line[:LINE_LENGTH]}..."


def is_process_lost(error: Exception) -> bool:
    """Return True if a process or object is gone, here or in a process that waited for it.

    Errors in code return False.
    """
    return isinstance(error.cause if isinstance(error, RayTaskError) else error, LOSSES)


def to_run_error(error: Exception) -> Exception:
    """Return what a run raises: its own error, a lost process, or a bug with its traceback."""
    if (own := unwrap_run_error(error)) is not None:
        return own
    return ProcessLostError(describe_error(error)) if is_process_lost(error) else RuntimeError(describe_error(error))


def unwrap_run_error(error: Exception) -> UserError | DivergenceError | EnvironmentFaultError | None:
    """Return the bad input, divergence or environment's fault behind an error, or None.

    Another process found it, and any replacement for that process would find it again.
    """
    cause = error.cause if isinstance(error, RayTaskError) else error
    return cause if isinstance(cause, (UserError, DivergenceError, EnvironmentFaultError)) else None
