"""The requested number of actors of a run on Ray, read from a file in its folder during the run."""

from __future__ import annotations

import math
import time
from pathlib import Path

FILE = "actors"
LOOK_EVERY_SECONDS = 1.0


class ActorCount:
    """The number of actors that the run was started with, until the file requests another one."""

    def __init__(self, actors: int, folder: Path) -> None:
        self._actors, self._path = actors, folder / FILE
        self._looked = -math.inf
        # Ignore a file from an earlier session, because this session was started with its own number.
        self._began = time.time()

    def __call__(self) -> int:
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY_SECONDS:
            self._looked = now
            if self._path.is_file() and self._path.stat().st_mtime >= self._began:
                text = self._path.read_text().strip()
                if text.isdigit() and int(text) > 0:
                    self._actors = int(text)
        return self._actors


def request_actor_count(folder: Path, actors: int) -> None:
    """Request another number of actors for the run in ``folder``."""
    part = folder / f".{FILE}.part"
    part.write_text(f"{actors}\n")
    part.replace(folder / FILE)
