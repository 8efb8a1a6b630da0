"""What a job's run folder says: whether it is finished, diverged, started or not begun, and its evaluations."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gdi.clock import duration
from gdi.report.log import parse_line
from gdi.runtime.run_log import METRICS
from gdi.sweep.jobs import Job

CONFIG, CHECKPOINTS = "config.json", "checkpoints"
# In this file a worker notes that a run diverged. The run's own files do not say it.
OUTCOME = "outcome.json"
# The beginning of a line of the log that has an evaluation.
EVALUATION = b'{"kind": "evaluation"'
# The last line of a log is in so many of its last bytes.
LAST_BYTES = 1 << 16
Word = Literal["finished", "diverged", "started", "none"]
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Status:
    """The status of a job, with the evaluations so far in the order of their steps."""

    word: Word
    evaluations: tuple[Line, ...] = ()
    steps: int = 0  # that a diverged run reached
    seconds: float = 0.0  # of training, over all sessions of a finished run

    @property
    def is_result(self) -> bool:
        return self.word in ("finished", "diverged")

    @property
    def result(self) -> str:
        """Return the score and the time of a finished run as text, and nothing for any other."""
        if self.word != "finished":
            return ""
        return f"mean {self.evaluations[-1]['mean']:.2f}, {duration(self.seconds)}"


@dataclass
class StatusReader:
    """A reader of run folders that reads a log again only after it changed."""

    sweep: Path
    _known: dict[Path, tuple[tuple[int, int], tuple[Line, ...]]] = field(default_factory=dict)

    def read(self, job: Job) -> Status:
        """Return the status of a job."""
        folder = job.folder(self.sweep)
        if not folder.is_dir():
            return Status("none")
        evaluations = self._evaluations(folder / METRICS)
        last = evaluations[-1] if evaluations else {}
        if last.get("steps", 0) >= job.steps and _is_saved(folder / CHECKPOINTS, job.steps):
            return Status("finished", evaluations, int(last["steps"]), float(last["clock"]["seconds"]))
        if (outcome := read_outcome(folder)) is not None:
            return Status("diverged", evaluations, int(outcome["steps"]))
        return Status("started" if (folder / CONFIG).is_file() else "none", evaluations)

    def _evaluations(self, log: Path) -> tuple[Line, ...]:
        try:
            found = log.stat()
        except OSError:
            return ()
        stamp = (found.st_size, found.st_mtime_ns)
        if log not in self._known or self._known[log][0] != stamp:
            self._known[log] = stamp, read_evaluations(log)
        return self._known[log][1]


def read_evaluations(log: Path) -> tuple[Line, ...]:
    """Return the whole evaluations in a log; the last of two for the same steps counts."""
    kept: list[Line] = []
    with log.open("rb") as file:
        for text in file:
            line = parse_line(text) if text.startswith(EVALUATION) and text.endswith(b"\n") else None
            if line is None:
                continue
            while kept and kept[-1]["steps"] >= line["steps"]:
                kept.pop()
            kept.append(line)
    return tuple(kept)


def reached_steps(log: Path) -> int:
    """Return the steps of the last whole line of a log, or 0."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return 0
    found = parse_line(lines[-1]) if lines else None
    return int(found["steps"]) if found is not None else 0


def _is_saved(checkpoints: Path, steps: int) -> bool:
    """Return True if a checkpoint has all steps of the run, or if the checkpoints were removed.

    The last evaluation is logged just before the last checkpoint, and a process may be killed between the two.
    """
    found = [path.name for path in checkpoints.glob("step-*")] if checkpoints.is_dir() else []
    reached = (name.split("-")[1] for name in found)
    return not found or any(word.isdecimal() and int(word) >= steps for word in reached)


def read_outcome(folder: Path) -> Mapping[str, Any] | None:
    """Return the note that a run diverged, or None."""
    try:
        outcome = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return outcome if isinstance(outcome, dict) and type(outcome.get("steps")) is int else None
