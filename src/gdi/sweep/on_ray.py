"""Attempts at jobs as tasks of a Ray cluster. All its machines see the sweep's folder under the same path.

A task starts the same process as a driver without Ray does, and waits for it. The driver asks a task to stop by a file,
because a signal does not reach other machines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gdi.cores import available_cores
from gdi.placement import PlacementConfig
from gdi.runtime.run_log import METRICS
from gdi.runtime.storage import storage_error
from gdi.sweep.claim import Claim
from gdi.sweep.jobs import Job
from gdi.sweep.process import LONGEST_MESSAGE, Process, import_early
from gdi.sweep.status import reached_steps

STOPS = "stops"
POLL_SECONDS = 0.2
READ_STEPS_SECONDS = 5.0
CPUS_PER_JOB = 1
# The exit code of a task that Ray lost, with its worker or its machine.
LOST = 255


def attend(sweep: Path, job: Job, claim: Path, token: str) -> tuple[int, str]:
    """Run an attempt in a process, and return its exit code and the last line of its errors.

    If this task is killed, the process sees it, saves its run and ends.
    """
    import_early([job])
    process = Process(sweep, job, Claim(claim, token))
    stop, stopped = stop_file(sweep, token), False
    while (code := process.exit_code()) is None:
        if not stopped and stop.exists():
            process.stop()
            stopped = True  # a second signal would kill the process on its way out
        time.sleep(POLL_SECONDS)
    return code, process.message()


def stop_file(sweep: Path, token: str) -> Path:
    return sweep / STOPS / token


class RayAttempt:
    """An attempt in a task of the cluster."""

    def __init__(self, sweep: Path, job: Job, claim: Claim) -> None:
        import ray

        self._sweep, self._token = sweep.absolute(), claim.token
        self._log = job.folder(self._sweep) / METRICS
        self._steps, self._read_at = 0, 0.0
        self._end: tuple[int, str] | None = None
        stop_file(self._sweep, self._token).unlink(missing_ok=True)
        task: Any = ray.remote(num_cpus=CPUS_PER_JOB, max_retries=0)(attend)
        self._task = task.remote(self._sweep, job, claim.path.absolute(), claim.token)

    @property
    def steps(self) -> int:
        """Return the steps that the log has reached, which is read now and then."""
        if time.monotonic() >= self._read_at:
            self._read_at = time.monotonic() + READ_STEPS_SECONDS
            self._steps = reached_steps(self._log)
        return self._steps

    def exit_code(self) -> int | None:
        import ray

        if self._end is None and ray.wait([self._task], timeout=0)[0]:
            try:
                self._end = ray.get(self._task)
            except ray.exceptions.RayError as error:
                why = " ".join(str(error).split()) or type(error).__name__
                self._end = LOST, why[:LONGEST_MESSAGE]
            stop_file(self._sweep, self._token).unlink(missing_ok=True)
        return None if self._end is None else self._end[0]

    def message(self) -> str:
        return "" if self._end is None else self._end[1]

    def stop(self) -> None:
        path = stop_file(self._sweep, self._token)
        try:
            path.parent.mkdir(exist_ok=True)
            path.touch()
        except OSError as error:
            raise storage_error(path.parent, error) from None

    def kill(self) -> None:
        """End the task at once. Its process saves its run and ends."""
        import ray

        ray.cancel(self._task, force=True)
        stop_file(self._sweep, self._token).unlink(missing_ok=True)


@contextmanager
def ray_cluster(address: str) -> Iterator[None]:
    """Connect to the cluster at ``address``, or to a new one on this machine if it is empty."""
    from gdi.runtime.ray.cluster import cluster

    # The jobs take turns, so a new Ray needs no room for the processes of a run.
    with cluster(address, PlacementConfig(), available_cores()):
        yield


def cluster_jobs() -> int:
    """Return how many jobs the connected cluster can run at once."""
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", os.cpu_count() or 1)) // CPUS_PER_JOB)
