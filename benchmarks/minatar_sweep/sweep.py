"""Runs jobs in parallel processes, until they are done, the time is up, or a stop is requested."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.minatar_sweep.jobs import Job
from benchmarks.minatar_sweep.records import is_finished, publish

ROOT = Path(__file__).parents[2]
POLL_SECONDS = 0.2


class Screen(Protocol):
    """A display of a running sweep."""

    def steps(self, job: Job, steps: int) -> None:
        """Show the steps of a job; the first call comes at its start."""
        ...

    def ended(self, job: Job, outcome: str) -> None:
        """Show the end of a job; ``outcome`` is finished, stopped, or failed with a reason."""
        ...


@dataclass
class Process:
    """A job's process.

    A thread reads the steps done from its standard output. Its errors go to a file next to the run.
    """

    job: Job
    runs: Path
    steps: int = 0
    _process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        job, folder = self.job, self.job.folder(self.runs)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.log = folder.with_name(f"{folder.name}.log")
        command = [sys.executable, "-m", "benchmarks.minatar_sweep.worker", "--agent", job.agent.name]
        command += ["--game", job.game, "--seed", str(job.seed), "--steps", str(job.steps)]
        command += ["--runs", str(self.runs.absolute())]
        with self.log.open("w", encoding="utf-8") as errors:
            # A separate session: Ctrl-C reaches only this process, which then stops the others in order.
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip().isdecimal():
                self.steps = int(line)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask the process to save and end."""
        if self.running:
            self._process.terminate()

    def kill(self) -> None:
        if self.running:
            self._process.kill()
        self._process.wait()

    def outcome(self, *, asked_to_stop: bool) -> str:
        self._reader.join()
        if is_finished(self.job, self.runs):  # even if a signal came after its last file
            return "finished"
        if asked_to_stop:
            return "stopped"
        last = (self.log.read_text(encoding="utf-8").splitlines() or ["another process stopped it."])[-1]
        return f"failed (exit code {self._process.returncode}): {last} See {self.log}."


def run_all(
    jobs: Sequence[Job],
    runs: Path,
    results: Path,
    at_once: int,
    stop: Callable[[], bool],
    screen: Screen,
    seconds: float = float("inf"),
) -> list[Job]:
    """Run the jobs in order, ``at_once`` at a time; return those that failed.

    The CSV files are rewritten after each finished job. Once ``stop`` returns True or the seconds are over, no job
    starts, and running ones are asked to save and end.
    """
    waiting, running, failed = list(jobs), list[Process](), list[Job]()
    deadline = time.monotonic() + seconds
    asked_to_stop = False
    try:
        while waiting or running:
            if not asked_to_stop and (stop() or time.monotonic() >= deadline):
                asked_to_stop = True
                waiting.clear()
                for process in running:
                    process.stop()
            while waiting and len(running) < at_once:
                running.append(Process(waiting.pop(0), runs))
                screen.steps(running[-1].job, 0)
            time.sleep(POLL_SECONDS)
            for process in list(running):
                screen.steps(process.job, process.steps)
                if not process.running:
                    running.remove(process)
                    outcome = process.outcome(asked_to_stop=asked_to_stop)
                    if outcome == "finished":
                        publish([process.job], runs, results)
                    elif outcome != "stopped":
                        failed.append(process.job)
                    screen.ended(process.job, outcome)
    finally:
        for process in running:  # only after an exception, such as a second Ctrl-C
            process.kill()
    return failed
