"""Common code for the processes of a run on Ray: how to start one, and its shared types."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import Any

import ray

from gdi.types import Array

Arrays = dict[str, Array]
# A ray.ObjectRef. As an argument it is passed in a list, because Ray would otherwise send the object.
Ref = Any
Handle = Any  # a Ray actor
POLL_SECONDS = 1.0  # how long the driver waits before it checks on the actors
NICENESS_STEP = 15  # the niceness that Ray gives to its workers by default
MAX_NICENESS = 19


def start_process(
    worker: type, cpus: float, gpus: float, *args: Any, strategy: Any = "DEFAULT", max_concurrency: int = 1
) -> Handle:
    """Start a worker as a Ray actor.

    Task events are off. A run makes millions of calls, and Ray's server would grow with their records.
    """
    remote = _remote(worker).options(
        num_cpus=cpus,
        num_gpus=gpus,
        max_restarts=0,
        max_concurrency=max_concurrency,
        scheduling_strategy=strategy,
        enable_task_events=False,
    )
    return remote.remote(*args)


@cache
def _remote(worker: type) -> Any:
    """Return the remote class, created once per worker, because Ray stores each one permanently."""
    return ray.remote(worker)


def threads_for(cpus: float) -> int:
    return max(1, int(cpus))


def lower_priority() -> None:
    """Give the learner precedence on the cores that it shares with this process.

    The learner computes all the time, while this process wakes up only now and then. Each wake-up takes a core from
    another process, often enough to cost a quarter of the speed with four actors on two cores. On Linux niceness
    belongs to a thread, and Ray's own threads wake up as well.
    """
    if not sys.platform.startswith("linux"):
        if hasattr(os, "nice"):
            os.nice(NICENESS_STEP)
        return
    for thread in map(int, os.listdir("/proc/self/task")):
        with suppress(ProcessLookupError):  # the thread has ended
            niceness = os.getpriority(os.PRIO_PROCESS, thread) + NICENESS_STEP
            os.setpriority(os.PRIO_PROCESS, thread, min(niceness, MAX_NICENESS))
