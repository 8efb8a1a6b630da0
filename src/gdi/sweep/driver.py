"""The driver: it runs the jobs of a sweep over the cores, until they are done, the time is up, or a stop is requested.

Several drivers may work on one folder, on one machine or on many. Each claims a job before it starts it, looks again
whether it is still to do, and leaves when every job left is in the hands of another driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gdi.errors import StorageError
from gdi.sweep.claim import HEARTBEAT_SECONDS, Claim
from gdi.sweep.holder import is_dead, machine
from gdi.sweep.jobs import Job
from gdi.sweep.process import Attempt
from gdi.sweep.results import Failure, SweepFolder
from gdi.sweep.worker import BAD_INPUT, NO_DISK

POLL_SECONDS = 0.1
# While another driver has all jobs that are left, look again this often.
LOOK_AGAIN_SECONDS = 2.0

Start = Callable[[Job, Claim], Attempt]


class Screen(Protocol):
    """A display of a running sweep."""

    def steps(self, job: Job, steps: int) -> None:
        """Show the steps of a job; the first call comes at its start."""
        ...

    def ended(self, job: Job, outcome: str, result: str = "") -> None:
        """Show the end of an attempt: finished, diverged, stopped, or why it failed; ``result`` is its score."""
        ...


@dataclass(frozen=True)
class Options:
    """How many jobs run at once, how often a crash is tried again, and after how many seconds to stop."""

    at_once: int
    retries: int = 1
    seconds: float = float("inf")


@dataclass
class Running:
    """A job that this driver runs now."""

    job: Job
    claim: Claim
    attempt: Attempt
    number: int = 1  # of the attempt


@dataclass
class Outcome:
    """What a driver did."""

    ended: list[Job] = field(default_factory=list)
    failed: list[Job] = field(default_factory=list)
    elsewhere: list[Job] = field(default_factory=list)  # in the hands of other drivers at the end


class Driver:
    """The jobs of a sweep folder over the cores of one machine."""

    def __init__(self, folder: SweepFolder, start: Start, options: Options, screen: Screen) -> None:
        self._folder, self._start, self._options, self._screen = folder, start, options, screen
        self._running: list[Running] = []
        self._outcome = Outcome()
        self._stopping = False
        self._storage: StorageError | None = None
        self._look = self._beat = 0.0  # when to look for jobs, and when to give a sign of life
        self._has_looked = False  # in this round, at all that is waiting
        self._beats: dict[Job, float] = {}  # the first sign of life that was seen of claims of other drivers

    def run(self, jobs: Sequence[Job], stop: Callable[[], bool]) -> Outcome:
        """Run the jobs in order. Raise StorageError if the disk refuses a write, after all that runs was stopped."""
        deadline = time.monotonic() + self._options.seconds
        # A failure of an earlier session is tried again, and one of another driver is not.
        old = {job: failure for job in jobs if (failure := self._folder.failure(job)) is not None}
        waiting = list(jobs)
        try:
            while True:
                if not self._stopping and (stop() or time.monotonic() >= deadline):
                    self._ask_to_stop()
                try:
                    if not self._stopping:
                        waiting = self._fill(waiting, old)
                    self._collect()
                except StorageError as error:
                    self._stop_for_disk(error)
                if not self._running and (self._stopping or (self._has_looked and self._is_done(waiting))):
                    break
                self._keep_claims()
                time.sleep(POLL_SECONDS)
        finally:
            self._kill_all()  # only after an exception, such as a second Ctrl-C
        if self._storage is not None:
            raise self._storage
        return self._outcome

    def _fill(self, waiting: list[Job], old: dict[Job, Failure]) -> list[Job]:
        """Start jobs while there is room; return those that are still to do, also by others."""
        self._has_looked = False
        if len(self._running) >= self._options.at_once or time.monotonic() < self._look:
            return waiting
        left: list[Job] = []
        for place, job in enumerate(waiting):
            if len(self._running) >= self._options.at_once:
                return [*left, *waiting[place:]]
            if self._is_over(job, old):
                continue
            if not self._try_to_start(job, old):
                left.append(job)
        self._look, self._has_looked = time.monotonic() + LOOK_AGAIN_SECONDS, True
        return left

    def _is_over(self, job: Job, old: dict[Job, Failure]) -> bool:
        """Return True if the job has a result, or if another driver failed at it meanwhile."""
        failure = self._folder.failure(job)
        return self._folder.status(job).is_result or (failure is not None and failure != old.get(job))

    def _try_to_start(self, job: Job, old: dict[Job, Failure]) -> bool:
        """Claim a job and start it; return False if another driver has it."""
        claim = self._folder.claims.acquire(job.name)
        if claim is None:
            return False
        try:
            if self._is_over(job, old):  # it ended after the first look, and before the claim
                claim.release()
                return True
            self._running.append(Running(job, claim, self._start(job, claim)))
        except BaseException:
            claim.release()
            raise
        self._screen.steps(job, 0)
        return True

    def _collect(self) -> None:
        """Take in the attempts that ended."""
        for running in list(self._running):
            self._screen.steps(running.job, running.attempt.steps)
            code = running.attempt.exit_code()
            if code is not None:
                self._running.remove(running)
                self._look = 0.0
                try:
                    self._end(running, code)
                except BaseException:
                    running.claim.release()
                    raise

    def _end(self, running: Running, code: int) -> None:
        """Decide what the end of an attempt means."""
        job, status = running.job, self._folder.status(running.job)
        if status.is_result:
            self._outcome.ended.append(job)
            self._folder.rebuild()
            self._release(running, status.word, status.result)
        elif not running.claim.beat():
            self._release(running, "taken over by another process")
        elif code == NO_DISK:
            self._stop_for_disk(StorageError(running.attempt.message()))
            self._release(running, "stopped")
        elif self._stopping:
            self._release(running, "stopped")
        elif code != BAD_INPUT and running.number <= self._options.retries:
            self._retry(running, code)
        else:
            self._fail(running, code)

    def _retry(self, running: Running, code: int) -> None:
        why = running.attempt.message()
        self._screen.ended(running.job, f"failed (exit code {code}): {why}. It is tried again")
        again = self._start(running.job, running.claim)
        self._running.append(Running(running.job, running.claim, again, running.number + 1))

    def _fail(self, running: Running, code: int) -> None:
        failure = Failure(running.number, code, running.attempt.message())
        self._outcome.failed.append(running.job)
        self._folder.note_failure(running.job, failure)  # before the claim is free, so that no other driver tries it
        self._folder.rebuild()
        self._release(running, f"failed (exit code {code}): {failure.message}")

    def _release(self, running: Running, outcome: str, result: str = "") -> None:
        running.claim.release()
        self._screen.ended(running.job, outcome, result)

    def _stop_for_disk(self, error: StorageError) -> None:
        """Stop everything: a full disk is no failure of a job, and all jobs write to it."""
        self._storage = self._storage or error
        if not self._stopping:
            self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        self._stopping = True
        for running in self._running:
            running.attempt.stop()

    def _is_done(self, waiting: Sequence[Job]) -> bool:
        """Return True if no job is left to this driver.

        A worker whose driver died still saves its run. Its job is waited for, because no other driver has it.
        """
        left = [job for job in waiting if not self._folder.status(job).is_result]
        elsewhere = [
            job for job in left if self._is_elsewhere(job)
        ]  # of all, because each look remembers a sign of life
        if len(elsewhere) < len(left):
            return False
        self._outcome.elsewhere = elsewhere
        return True

    def _is_elsewhere(self, job: Job) -> bool:
        """Return True if another driver is alive and has the job.

        A driver of another machine must give a sign of life meanwhile. It may have died less than a minute ago.
        """
        state = self._folder.claims.state(job.name)
        if state.is_free or not state.holders or is_dead(state.holders[0]):
            return False
        return state.holders[0].host == machine() or self._beats.setdefault(job, state.beat) != state.beat

    def _keep_claims(self) -> None:
        """Give a sign of life for each claim. Kill an attempt whose claim was lost to another process."""
        if time.monotonic() < self._beat:
            return
        self._beat = time.monotonic() + HEARTBEAT_SECONDS
        for running in self._running:
            if not running.claim.beat():
                running.attempt.kill()

    def _kill_all(self) -> None:
        for running in self._running:
            running.attempt.kill()
            running.claim.release()
