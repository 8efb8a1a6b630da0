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
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gdi.runtime.events import Event
from gdi.runtime.log_file import LogFile
from gdi.runtime.storage import open_to_write, read_bytes, writing
from gdi.runtime.tensorboard import EventFile
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
        with writing(run_dir):
            self._metrics, self._episodes = LogFile(run_dir / METRICS), LogFile(run_dir / EPISODES)
            if self._episodes.size == 0:
                self._write_header()
        self._tensorboard: EventFile | None = None

    @property
    def _files(self) -> dict[str, LogFile]:
        return {METRICS: self._metrics, EPISODES: self._episodes}

    def _write_header(self) -> None:
        self._write_episode((*BEFORE_INDEX, *self._index_names, *AFTER_INDEX))

    def _write_episode(self, cells: Iterable[object]) -> None:
        line = io.StringIO()
        csv.writer(line).writerow(cells)
        self._episodes.write(line.getvalue())

    def event(self, event: Event) -> None:
        with writing(self._run_dir):
            if event["kind"] == "notice":
                self._append(NOTICES, event["text"])
            elif event["kind"] == "fault":
                self._append(FAULTS, f"at {event['steps']} steps, {event['text']}\n{event['trace']}")
            elif event["kind"] in ("train", "evaluation"):
                self._metrics.write(json.dumps(event) + "\n")
                self._metrics.flush()
                self._draw(event)

    def _append(self, name: str, text: str) -> None:
        with open_to_write(self._run_dir / name, os.O_APPEND) as file:
            file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}\n".encode())

    def _draw(self, event: Event) -> None:
        """Write the single numbers of an event as curves for TensorBoard."""
        if self._tensorboard is None:
            # Viewers drop an earlier session's events from this step on, because a resumed run repeats them.
            self._tensorboard = EventFile(self._run_dir / TENSORBOARD, purge_step=event["steps"])
        prefix = "evaluation/" if event["kind"] == "evaluation" else ""
        shown = {
            **{prefix + k: v for k, v in event.items() if isinstance(v, (int, float)) and k != "steps"},
            **{f"clock/{k}": v for k, v in event["clock"].items() if isinstance(v, float)},
        }
        for name, value in shown.items():
            self._tensorboard.add(name, value, event["steps"])
        self._tensorboard.flush()

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        with writing(self._run_dir):
            self._write_episode(
                (
                    steps,
                    episode.env,
                    *(f"{value:.6g}" for value in episode.index),
                    f"{episode.episode_return:.8g}",
                    episode.length_steps,
                    int(episode.truncated),
                )
            )

    def position(self) -> tuple[State, dict[str, str]]:
        """Sync both files to disk. Return their sizes and their hashes, so that a checkpoint never points past them."""
        with writing(self._run_dir):
            synced = {name: file.sync() for name, file in self._files.items()}
        return {name: size for name, (size, _) in synced.items()}, {
            name: digest for name, (_, digest) in synced.items()
        }

    def rewind(self, position: State, digests: dict[str, str]) -> list[str]:
        """Drop everything written after the position, because the resumed run writes it again.

        The position {} is the beginning. Return what is damaged before the position. It is no reason to stop, because
        the checkpoint is whole.
        """
        with writing(self._run_dir):
            damage = {
                name: file.rewind(int(position.get(name, 0)), digests.get(name)) for name, file in self._files.items()
            }
            if self._episodes.size == 0:
                self._write_header()
        self._close_tensorboard()  # a new writer makes viewers drop the events that are written again
        return [
            f"{self._run_dir / name} is damaged: {what}. The run continues from its checkpoint and keeps the rest."
            for name, what in damage.items()
            if what is not None
        ]

    def restore(self) -> list[str]:
        """Write the files again that are no longer in the run folder, and return their names."""
        with writing(self._run_dir):
            lost = [name for name, file in self._files.items() if file.restore()]
        if not (self._run_dir / TENSORBOARD).is_dir():
            self._close_tensorboard()
        return lost

    def _close_tensorboard(self) -> None:
        if self._tensorboard is not None:
            self._tensorboard.close()
            self._tensorboard = None

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._close_tensorboard()


def read_metrics(run_dir: Path, kind: str) -> list[Event]:
    """Return all whole lines of one kind; skip lines that a crash cut or that are damaged."""
    events = []
    for line in read_bytes(run_dir / METRICS).splitlines(keepends=True):
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if line.endswith(b"\n") and isinstance(event, dict) and event.get("kind") == kind:
                events.append(event)
    return events
