"""TensorBoard events, written by the caller's thread.

tensorboardX's SummaryWriter writes in a thread of its own. On a full disk that thread dies, and the run waits for it
forever.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any


class EventFile:
    """A new event file in a folder."""

    def __init__(self, folder: Path, purge_step: int) -> None:
        """Viewers drop the events of earlier files from ``purge_step`` on."""
        # Imported here, because protobuf takes long to load and only a run that logs needs it.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.summary import scalar

        folder.mkdir(parents=True, exist_ok=True)
        self._event, self._scalar = Event, scalar
        self._file: Any = EventsWriter(str(folder / "events"), f".{time.monotonic_ns()}")
        self._file.write_event(Event(step=purge_step, wall_time=time.time(), file_version="brain.Event:2"))
        start = SessionLog(status=SessionLog.START)
        self._file.write_event(Event(step=purge_step, wall_time=time.time(), session_log=start))

    def add(self, name: str, value: float, step: int) -> None:
        self._file.write_event(self._event(step=step, wall_time=time.time(), summary=self._scalar(name, value)))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        with suppress(OSError):  # what a full disk does not take is drawn again
            self._file.close()
