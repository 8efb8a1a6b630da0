"""What the processes of a run on Ray have in common: how one is started, and what it is given."""

from __future__ import annotations

from functools import cache
from typing import Any

import ray

from gdi.types import Array

Arrays = dict[str, Array]
Ref = Any  # ray.ObjectRef; as an argument it stands in a list, or Ray would send what it refers to
Handle = Any  # a Ray actor
TICK_SECONDS = 1.0  # how long the driver waits before it looks around


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
