"""How many actors a run on Ray should have, told through a file in its folder while it runs."""

from __future__ import annotations

import math
import time
from pathlib import Path

FILE = "actors"
LOOK_EVERY_SECONDS = 1.0


class Wanted:
    """As many as the run was started with, until the file says otherwise."""

    def __init__(self, actors: int, folder: Path) -> None:
        self._actors, self._path = actors, folder / FILE
        self._looked = -math.inf
        self._began = time.time()  # a file from before is a session's before: this one was told its own number

    def __call__(self) -> int:
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY_SECONDS:
            self._looked = now
            if self._path.is_file() and self._path.stat().st_mtime >= self._began:
                text = self._path.read_text().strip()
                if text.isdigit() and int(text) > 0:
                    self._actors = int(text)
        return self._actors


def want_actors(folder: Path, actors: int) -> None:
    """Tell the run in ``folder`` to go on with another number of actors."""
    part = folder / f".{FILE}.part"
    part.write_text(f"{actors}\n")
    part.replace(folder / FILE)
