"""The run log: append-only files in the run folder, from which all reports are made.

``metrics.jsonl`` has one JSON object per line, of kind ``train`` or ``evaluation``. Everything that depends on timing
is under the single key ``clock``, and the rest is the same for the same seed.

``episodes.csv`` lists every finished training episode with its exploration setting (λ). ``notices.log`` has warnings
with the time. ``faults.log`` has the faults of environments with their tracebacks. ``tensorboard/`` holds the metrics
as TensorBoard events.
"""

from __future__ import annotations

import csv
import io
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from gdi.errors import UserError
from gdi.runtime.events import Event
from gdi.types import EpisodeEnd, State

METRICS, EPISODES, TENSORBOARD, NOTICES = "metrics.jsonl", "episodes.csv", "tensorboard", "notices.log"
FAULTS = "faults.log"
# The components of λ, which the index space names, come between these two groups of columns in episodes.csv.
BEFORE_INDEX, AFTER_INDEX = ("steps", "env"), ("episode_return", "length_steps", "truncated")


class RunLog:
    """A writer of one run's files, which a resumed run continues at its checkpoint's position."""

    def __init__(self, run_dir: Path, index_names: tuple[str, ...]) -> None:
        """``index_names`` are the components of λ, in the order of the index space."""
        self._run_dir = run_dir
        self._index_names = index_names
        self._metrics = (run_dir / METRICS).open("a", encoding="utf-8")
        self._episodes = (run_dir / EPISODES).open("a", encoding="utf-8", newline="")
        self._tensorboard: Any = None
        if self._episodes.tell() == 0:
            self._write_header()

    def _write_header(self) -> None:
        csv.writer(self._episodes).writerow((*BEFORE_INDEX, *self._index_names, *AFTER_INDEX))

    def event(self, event: Event) -> None:
        if event["kind"] == "notice":
            self._append(NOTICES, event["text"])
        if event["kind"] == "fault":
            self._append(FAULTS, f"at {event['steps']} steps, {event['text']}\n{event['trace']}")
        if event["kind"] not in ("train", "evaluation"):
            return
        self._metrics.write(json.dumps(event) + "\n")
        self._metrics.flush()
        writer = self._tensorboard_writer(event["steps"])
        prefix = "evaluation/" if event["kind"] == "evaluation" else ""
        for name, value in event.items():
            if isinstance(value, (int, float)) and name != "steps":
                writer.add_scalar(prefix + name, value, event["steps"])
        for name, value in event["clock"].items():
            if isinstance(value, float):
                writer.add_scalar(f"clock/{name}", value, event["steps"])
        writer.flush()

    def _append(self, name: str, text: str) -> None:
        with (self._run_dir / name).open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}\n")

    def _tensorboard_writer(self, first_step: int) -> Any:
        if self._tensorboard is None:
            from tensorboardX import SummaryWriter

            # Viewers drop an earlier session's events from ``purge_step`` on, because a resumed run repeats them.
            self._tensorboard = SummaryWriter(str(self._run_dir / TENSORBOARD), purge_step=first_step)
        return self._tensorboard

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        line = io.StringIO()
        csv.writer(line).writerow(
            (
                steps,
                episode.env,
                *(f"{value:.6g}" for value in episode.index),
                f"{episode.episode_return:.8g}",
                episode.length_steps,
                int(episode.truncated),
            )
        )
        self._episodes.write(line.getvalue())

    def position(self) -> State:
        """Sync both files to disk and return their sizes, so that a checkpoint never points past them."""
        for file in (self._metrics, self._episodes):
            file.flush()
            os.fsync(file.fileno())
        return {METRICS: self._metrics.tell(), EPISODES: self._episodes.tell()}

    def rewind(self, position: State) -> None:
        """Drop everything written after the position, because the resumed run writes it again.

        The position {} is the beginning.
        """
        for name, file in ((METRICS, self._metrics), (EPISODES, self._episodes)):
            end = int(position.get(name, 0))
            file.flush()
            if os.fstat(file.fileno()).st_size < end:
                raise UserError(
                    f"{self._run_dir / name} is shorter than at its checkpoint: part of it is lost, so the run "
                    "cannot be resumed without a gap. Start a new run."
                )
            file.truncate(end)
            file.seek(end)
        if not position:
            self._write_header()
        # A new writer makes viewers drop the events that are written again.
        if self._tensorboard is not None:
            self._tensorboard.close()
            self._tensorboard = None

    def close(self) -> None:
        self._metrics.close()
        self._episodes.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_metrics(run_dir: Path, kind: str) -> list[Event]:
    """Return all complete lines of one kind; skip a last line that a crash truncated."""
    events = []
    with (run_dir / METRICS).open(encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                break
            event = json.loads(line)
            if event["kind"] == kind:
                events.append(event)
    return events
