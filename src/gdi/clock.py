"""Durations: a clock of the parts of the loop, and the words for people."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


def duration(seconds: float | None) -> str:
    """Return a duration such as ``3 h 05 min``, ``12 min`` or ``40 s``; None is ``unknown``."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02d} min"


class Clock:
    """A sum of seconds per name. ``lap`` returns the shares since the last lap."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.add({name: time.perf_counter() - begin})

    def add(self, seconds: dict[str, float]) -> None:
        """Add seconds that another clock measured."""
        for name, value in seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + value

    def take(self) -> dict[str, float]:
        """Return the seconds per name so far, for another clock to add, and reset them."""
        seconds, self._seconds = self._seconds, {}
        return seconds

    def lap(self) -> tuple[float, dict[str, float]]:
        """Return the seconds since the last lap and the share of each name; unmeasured time is ``rest``."""
        now = time.perf_counter()
        total = max(now - self._began, 1e-9)
        shares = {name: seconds / total for name, seconds in self._seconds.items()}
        shares["rest"] = max(0.0, 1.0 - sum(shares.values()))
        self._seconds, self._began = {}, now
        return total, shares
