"""What a sweep will need: jobs, hours, memory and disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gdi.clock import duration
from gdi.errors import UserError
from gdi.runtime.machine import available_memory_bytes
from gdi.sweep.files import SPEEDS, read_json, write_whole
from gdi.sweep.jobs import Job, one_of_each
from gdi.sweep.probe import Trial, try_jobs
from gdi.sweep.status import Status

GIB = 1 << 30
# A sweep that takes longer is started only with --yes.
ASK_ABOVE_SECONDS = 24 * 3600.0
StatusOf = Callable[[Job], Status]
Trials = Mapping[str, Trial]  # by the kind of job


@dataclass(frozen=True)
class Estimate:
    """What is left of a sweep, and what it needs with ``at_once`` jobs at a time."""

    jobs: int
    done: int
    at_once: int
    seconds: float  # with so many jobs at once
    of_unknown_speed: int  # jobs that the seconds leave out
    memory_bytes: int
    available_bytes: int  # of memory; 0 if it is unknown
    disk_bytes: int
    free_bytes: int

    @property
    def left(self) -> int:
        return self.jobs - self.done

    def text(self) -> str:
        """Return the plan in three lines, or in one if nothing is left."""
        if not self.left:
            return f"All {self.jobs} jobs are done."
        memory = f" of {_gib(self.available_bytes)}" if self.available_bytes else ""
        room = "" if self.disk_bytes <= self.free_bytes else ", which is not enough"
        return (
            f"Jobs: {self.jobs} ({self.done} done, {self.left} left), {self.at_once} at a time.\n"
            f"Time: {self._time()}.\n"
            f"Memory: {_at_most(self.memory_bytes)}{memory}. "
            f"Disk: {_at_most(self.disk_bytes)} of {_gib(self.free_bytes)} free{room}."
        )

    def _time(self) -> str:
        if self.of_unknown_speed == self.left:
            return "unknown"
        more = f", and {self.of_unknown_speed} jobs of unknown speed" if self.of_unknown_speed else ""
        return f"about {duration(self.seconds)}{more}"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def _at_most(size: float) -> str:
    return "less than 0.1 GiB" if size / GIB < 0.05 else f"at most about {_gib(size)}"


def kind_of(job: Job) -> str:
    """Return a text that is equal for jobs that differ only in the seed."""
    return json.dumps([job.env, job.agent, job.steps, sorted(job.settings.items())])


def known_trials(sweep: Path) -> dict[str, Trial]:
    """Return the trials that a sweep folder remembers."""
    found = {}
    for kind, trial in read_json(sweep / SPEEDS).items():
        if isinstance(trial, dict) and set(trial) == set(Trial.__dataclass_fields__):
            found[kind] = Trial(**trial)
    return found


def remember_trials(sweep: Path, trials: Trials) -> None:
    write_whole(sweep / SPEEDS, json.dumps({kind: asdict(trial) for kind, trial in trials.items()}, indent=1) + "\n")


def missing_trials(jobs: Sequence[Job], known: Trials, status: StatusOf, at_once: int) -> dict[str, Trial]:
    """Try the jobs of which nothing is known. Speed is measured once per environment and preset."""
    ended = [job for job in jobs if status(job).is_result]
    # A job that has run needs no trial, and neither do its other seeds.
    tried = {*known, *map(kind_of, ended)}
    todo = [job for job in one_of_each(jobs) if kind_of(job) not in tried and not status(job).is_result]
    measured = {(job.env, job.preset) for job in jobs if job in ended or known.get(kind_of(job), NONE).steps_per_second}
    timed = set()
    for job in todo:
        if (job.env, job.preset) not in measured:
            measured.add((job.env, job.preset))
            timed.add(job)
    found = try_jobs(todo, timed.__contains__, at_once)
    return {kind_of(job): trial for job, trial in found.items()}


NONE = Trial(0.0, 0, 0)


def seconds_per_step(jobs: Sequence[Job], trials: Trials, status: StatusOf) -> dict[tuple[str, str], float]:
    """Return the seconds that a step takes, by environment and preset: of finished jobs, or else of a trial."""
    speeds: dict[tuple[str, str], list[float]] = {}
    for job in jobs:
        if (found := status(job)).word == "finished" and found.seconds > 0:
            speeds.setdefault((job.env, job.preset), []).append(found.seconds / found.steps)
    for job in jobs:
        speed = trials.get(kind_of(job), NONE).steps_per_second
        if speed > 0 and (job.env, job.preset) not in speeds:
            speeds[job.env, job.preset] = [1 / speed]
    return {key: sum(values) / len(values) for key, values in speeds.items()}


def steps_left(job: Job, status: StatusOf) -> int:
    """Return the steps that are left, as far as the log tells: up to the last evaluation."""
    found = status(job)
    if found.is_result:
        return 0
    return job.steps - (int(found.evaluations[-1]["steps"]) if found.evaluations and not job.is_peer else 0)


def estimate(jobs: Sequence[Job], trials: Trials, status: StatusOf, at_once: int, sweep: Path) -> Estimate:
    """Return what is left of a sweep."""
    left = [job for job in jobs if not status(job).is_result]
    speeds = seconds_per_step(jobs, trials, status)
    seconds = [steps_left(job, status) * speeds.get((job.env, job.preset), 0.0) for job in left]
    sizes = [trials.get(kind_of(job), NONE) for job in left]
    largest = sorted((trial.memory_bytes for trial in sizes), reverse=True)[:at_once]
    # No job is split, so the longest one is a lower bound.
    total = max(sum(seconds) / min(at_once, max(1, len(left))), max(seconds, default=0.0))
    return Estimate(
        jobs=len(jobs),
        done=len(jobs) - len(left),
        at_once=at_once,
        seconds=total,
        of_unknown_speed=sum((job.env, job.preset) not in speeds for job in left),
        memory_bytes=sum(largest),
        available_bytes=available_memory_bytes() or 0,
        disk_bytes=sum(trial.disk_bytes for trial in sizes),
        free_bytes=shutil.disk_usage(existing_parent(sweep)).free,
    )


def existing_parent(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())


def fitting(trials: Iterable[Trial], at_once: int) -> int:
    """Return how many jobs fit into the memory at once, at most ``at_once``; raise UserError if not even one does."""
    largest = max((trial.memory_bytes for trial in trials), default=0)
    available = available_memory_bytes()
    if not largest or not available:
        return at_once
    if largest > available:
        raise UserError(f"a job needs about {_gib(largest)}, but only {_gib(available)} are available.")
    return min(at_once, available // largest)
