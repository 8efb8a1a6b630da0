"""What Ray's errors mean to a run."""

from __future__ import annotations

from ray.exceptions import (
    ActorUnschedulableError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
)

from gdi.errors import Diverged, UserError
from gdi.learner.group import GroupBroken
from gdi.runtime.faults import PartLost

LINE_LENGTH = 160
LOSSES = (RayActorError, ObjectLostError, OutOfMemoryError, NodeDiedError, ActorUnschedulableError, GroupBroken)


def reason(error: Exception) -> str:
    """Where a failure comes from: the traceback in the other process, or what Ray knows of its death."""
    return str(error) if isinstance(error, RayTaskError) else f"{type(error).__name__}: {error}"


def in_a_line(why: str) -> str:
    """The last line of a reason, cut to what fits a log; Ray's explanations are long."""
    line = why.strip().splitlines()[-1]
    return line if len(line) <= LINE_LENGTH else f"{line[:LINE_LENGTH]}..."


def is_loss(error: Exception) -> bool:
    """True if a process or an object is gone, here or in a process that waited for it; false for errors in code."""
    return isinstance(error.cause if isinstance(error, RayTaskError) else error, LOSSES)


def told(error: Exception) -> Exception:
    """As what a run raises it: its own error, a part to replace, or a mistake with its traceback."""
    if (own := run_error(error)) is not None:
        return own
    return PartLost(reason(error)) if is_loss(error) else RuntimeError(reason(error))


def run_error(error: Exception) -> UserError | Diverged | None:
    """Bad input or divergence that was noticed in another process, and would be in any that took its place."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    return cause if isinstance(cause, (UserError, Diverged)) else None
