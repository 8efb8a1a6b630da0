"""The CSV files of a sweep, always made whole from the run folders, so that no row is lost or doubled.

``results.csv`` has one row per ended run, with its last evaluation. ``evaluations.csv`` has every evaluation of the
finished runs. ``scores.csv`` has the Atari games among them, for ``gdi scores``. ``failures.csv`` has the jobs that
failed. One process at a time makes them, because an older view of the folder must not overwrite a newer one.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gdi.envs.names import is_atari
from gdi.report.records import EVALUATION_COLUMNS
from gdi.sweep.claim import Claim, Claims
from gdi.sweep.files import (
    CLAIMS,
    EVALUATIONS,
    FAILED,
    FAILURES,
    PLAN,
    RESULTS,
    SCORES,
    Row,
    read_json,
    remove_parts,
    write_csv,
    write_whole,
)
from gdi.sweep.jobs import Job, all_jobs
from gdi.sweep.plan import Plan, read_plan
from gdi.sweep.status import Status, StatusReader

RESULT_COLUMNS = ("env", "preset", "variant", "seed", "steps", "status", "mean", "returns")
FAILURE_COLUMNS = ("env", "preset", "variant", "seed", "attempt", "exit_code", "message")
SCORE_COLUMNS = ("agent", "game", "seed", "score")
LOCK = "results"
WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class Failure:
    """The last attempt at a job that failed."""

    attempt: int
    exit_code: int
    message: str
    token: str = field(default_factory=lambda: secrets.token_hex(8))  # tells it from an equal failure later


class SweepFolder:
    """A sweep's folder: its plan, its jobs' status, and its CSV files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.claims = Claims(path / CLAIMS)
        self._reader = StatusReader(path)

    def plan(self) -> Plan:
        return read_plan(self.path / PLAN)

    def jobs(self) -> list[Job]:
        return all_jobs(self.plan())

    def status(self, job: Job) -> Status:
        return self._reader.read(job)

    def failure(self, job: Job) -> Failure | None:
        """Return the last failure of a job, or None."""
        found = read_json(self._failure_path(job))
        try:
            return Failure(int(found["attempt"]), int(found["exit_code"]), str(found["message"]), str(found["token"]))
        except (KeyError, TypeError, ValueError):
            return None

    def note_failure(self, job: Job, failure: Failure) -> None:
        write_whole(self._failure_path(job), json.dumps(asdict(failure)) + "\n")

    def _failure_path(self, job: Job) -> Path:
        return self.path / FAILED / f"{job.name}.json"

    def rebuild(self) -> None:
        """Make the CSV files from the run folders as they are now."""
        claim = self._lock()
        try:
            remove_parts(self.path)
            remove_parts(self.path / FAILED)
            jobs = in_order(self.plan())
            found = [(job, self.status(job)) for job in jobs]
            for job, status in found:
                if status.is_result:
                    self._failure_path(job).unlink(missing_ok=True)
            self._write(found)
        finally:
            claim.release()

    def _lock(self) -> Claim:
        """Wait for the claim on the CSV files. That of a dead process frees itself."""
        while (claim := self.claims.acquire(LOCK)) is None:
            time.sleep(WAIT_SECONDS)
        return claim

    def _write(self, found: Sequence[tuple[Job, Status]]) -> None:
        ended = [(job, status) for job, status in found if status.is_result]
        finished = [(job, status) for job, status in ended if status.word == "finished"]
        failed = [(job, failure) for job, _ in found if (failure := self.failure(job)) is not None]
        write_csv(self.path / RESULTS, RESULT_COLUMNS, (result_row(*one) for one in ended))
        write_csv(self.path / EVALUATIONS, EVALUATION_COLUMNS, evaluation_rows(finished))
        scores = [(job, status) for job, status in finished if is_atari(job.env)]
        if scores:
            write_csv(self.path / SCORES, SCORE_COLUMNS, (score_row(*one) for one in scores))
        write_csv(self.path / FAILURES, FAILURE_COLUMNS, (failure_row(*one) for one in failed))


def in_order(plan: Plan) -> list[Job]:
    """Return the jobs of a plan in the order of rows: by environment, agent and seed."""

    def place(job: Job) -> tuple[int, int, str, int]:
        return plan.envs.index(job.env), plan.presets.index(job.preset), job.variant, job.seed

    return sorted(all_jobs(plan), key=place)


def _who(job: Job) -> Row:
    return {"env": job.env, "preset": job.preset, "variant": job.variant, "seed": str(job.seed)}


def result_row(job: Job, status: Status) -> Row:
    """Return the row of an ended run: its last evaluation, with the return of every episode."""
    last = status.evaluations[-1] if status.evaluations else {}
    return {
        **_who(job),
        "steps": str(status.steps),
        "status": status.word,
        "mean": f"{last['mean']:.8g}" if last else "",
        "returns": " ".join(f"{value:.8g}" for value in last.get("returns", ())),
    }


def evaluation_rows(finished: Iterable[tuple[Job, Status]]) -> Iterable[Row]:
    """Yield a row per evaluation, in the columns of a benchmark's records."""
    for job, status in finished:
        for line in status.evaluations:
            yield {
                **{"agent": job.agent, "game": job.env, "seed": str(job.seed), "steps": str(line["steps"])},
                **{name: f"{line[name]:.8g}" for name in ("mean", "min", "max")},
                **{"episodes": str(line["episodes"]), "seconds": f"{line['clock']['seconds']:.1f}"},
                "training_steps": str(job.steps),
            }


def score_row(job: Job, status: Status) -> Row:
    score = f"{status.evaluations[-1]['mean']:.8g}"
    return {"agent": job.agent, "game": job.env, "seed": str(job.seed), "score": score}


def failure_row(job: Job, failure: Failure) -> Row:
    return {
        **_who(job),
        "attempt": str(failure.attempt),
        "exit_code": str(failure.exit_code),
        "message": failure.message,
    }
