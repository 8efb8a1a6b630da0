"""What the processes of a run on Ray have in common: how one is started, and what it is given."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from typing import Any

import ray

from gdi.types import Array

Arrays = dict[str, Array]
Ref = Any  # ray.ObjectRef; as an argument it stands in a list, or Ray would send what it refers to
Handle = Any  # a Ray actor
TICK_SECONDS = 1.0  # how long the driver waits before it looks around
BEHIND_THE_LEARNER = 15  # niceness: as Ray gives to all its workers by default
LOWEST_PRIORITY = 19


def start_process(
    worker: type, cpus: float, gpus: float, *args: Any, strategy: Any = "DEFAULT", max_concurrency: int = 1
) -> Handle:
    """Ray keeps no record of every call: a run makes millions, and its server would grow with them."""
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
    """Made once a class: each one is stored by Ray for good."""
    return ray.remote(worker)


def threads_for(cpus: float) -> int:
    return max(1, int(cpus))


def give_way() -> None:
    """Let the learner go first where this process shares its cores.

    The learner computes all the time, this process now and then, and whatever wakes up takes a core from somebody: so
    often that with four actors on two cores a run lost a quarter of its speed. On Linux a niceness belongs to a thread,
    and Ray's own threads wake up as well.
    """
    if not sys.platform.startswith("linux"):
        if hasattr(os, "nice"):
            os.nice(BEHIND_THE_LEARNER)
        return
    for thread in map(int, os.listdir("/proc/self/task")):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            niceness = os.getpriority(os.PRIO_PROCESS, thread) + BEHIND_THE_LEARNER
            os.setpriority(os.PRIO_PROCESS, thread, min(niceness, LOWEST_PRIORITY))
