"""Runs jobs side by side, one process each, until they are done, the time is up, or somebody asks to stop."""

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
    """What is told about a sweep as it runs."""

    def steps(self, job: Job, steps: int) -> None:
        """The job is that far; told first when it starts."""
        ...

    def ended(self, job: Job, outcome: str) -> None:
        """``outcome`` is finished, stopped, or failed and why."""
        ...


@dataclass
class Process:
    """A job's process. Its standard output is the steps done, read by a thread; its errors go to a file beside."""

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
            # A session of its own: Ctrl-C comes to us alone, and we tell the others in good order.
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
        """Ask it to save and end."""
        if self.running:
            self._process.terminate()

    def kill(self) -> None:
        if self.running:
            self._process.kill()
        self._process.wait()

    def outcome(self, *, asked_to_stop: bool) -> str:
        self._reader.join()
        if is_finished(self.job, self.runs):  # whatever reached it after its last file
            return "finished"
        if asked_to_stop:
            return "stopped"
        last = (self.log.read_text(encoding="utf-8").splitlines() or ["it was stopped from outside"])[-1]
        return f"failed (exit code {self._process.returncode}): {last} The whole log: {self.log}"


def run_all(
    jobs: Sequence[Job],
    runs: Path,
    results: Path,
    at_once: int,
    stop: Callable[[], bool],
    screen: Screen,
    seconds: float = float("inf"),
) -> list[Job]:
    """Run the jobs in their order, ``at_once`` at a time; returns those that failed.

    The CSV files are written anew after each that finished. When ``stop`` turns true or the seconds are over no job is
    started, and those that run are asked to save and end.
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
        for process in running:  # only when we are leaving by an exception, a second Ctrl-C
            process.kill()
    return failed
