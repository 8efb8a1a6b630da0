"""The progress of a sweep and its remaining time: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from gdi.clock import duration
from gdi.sweep.jobs import Job

PLAIN_EVERY_SECONDS = 30.0


class Pace:
    """The steps per second of a sweep, and the time that it still needs.

    Steps that a resumed run did in an earlier session do not count.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._began = now, now()
        self._first: dict[Job, int] = {}
        self._steps: dict[Job, int] = {}

    def at(self, job: Job, steps: int) -> None:
        # A process reports 0 until it has loaded its checkpoint.
        if steps and job not in self._first:
            self._first[job] = steps
        self._steps[job] = steps

    def done(self, job: Job) -> int:
        """Return the steps done, at most the job's steps, because a run ends inside its last window."""
        return min(self._steps.get(job, 0), job.steps)

    @property
    def per_second(self) -> float:
        gained = sum(self._steps[job] - first for job, first in self._first.items())
        return gained / max(self._now() - self._began, 1e-9)

    def seconds_left(self, steps_left: int) -> float | None:
        """Return the estimated seconds, or None if nothing is known yet."""
        return steps_left / self.per_second if self.per_second > 0 else None


class Display:
    """A display of a sweep of ``jobs``; ``before`` counts those done in earlier sessions."""

    def __init__(self, jobs: Sequence[Job], before: int, console: Console) -> None:
        self._jobs, self._before, self._console = jobs, before, console
        self._total = sum(job.steps for job in jobs)
        self._pace = Pace()
        self._finished = 0
        self._last_plain = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._all = self._progress.add_task("all jobs", total=self._total, note="")
        self._tasks: dict[Job, TaskID] = {}

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def steps(self, job: Job, steps: int) -> None:
        if job not in self._tasks:
            self._tasks[job] = self._progress.add_task(f"  {job}", total=job.steps, note="")
        self._pace.at(job, steps)
        self._show(job)

    def ended(self, job: Job, outcome: str, result: str = "") -> None:
        count = ""
        if outcome in ("finished", "diverged"):
            self._finished += 1
            self._pace.at(job, job.steps)
            count = f"{self._done}  "
        if job in self._tasks:
            self._show(job)
            self._progress.remove_task(self._tasks.pop(job))
        text = f"{count}{job}: {', '.join(filter(None, [outcome, result]))}"
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @property
    def _done(self) -> str:
        return f"{self._before + self._finished} of {self._before + len(self._jobs)}"

    def _show(self, job: Job) -> None:
        done = sum(self._pace.done(job) for job in self._jobs)
        left = duration(self._pace.seconds_left(self._total - done))
        note = f"{self._done} jobs, {self._pace.per_second:,.0f} steps/s, {left} left"
        self._progress.update(self._tasks[job], completed=self._pace.done(job))
        self._progress.update(self._all, completed=done, note=note)
        if not self._console.is_terminal and time.monotonic() - self._last_plain > PLAIN_EVERY_SECONDS:
            self._last_plain = time.monotonic()
            text = f"{done / self._total:.1%} of the steps, {note}"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
