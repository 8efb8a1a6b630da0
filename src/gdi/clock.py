"""Where the time goes: seconds per part of the loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up seconds under names; ``lap`` gives the shares since the last lap."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.add({name: time.perf_counter() - begin})

    def add(self, seconds: dict[str, float]) -> None:
        """What was measured elsewhere."""
        for name, value in seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + value

    def take(self) -> dict[str, float]:
        """The seconds per name so far, for another clock to add; begins anew."""
        seconds, self._seconds = self._seconds, {}
        return seconds

    def lap(self) -> tuple[float, dict[str, float]]:
        """(seconds since the last lap, share of them per name; what nobody measured is ``rest``)."""
        now = time.perf_counter()
        total = max(now - self._began, 1e-9)
        shares = {name: seconds / total for name, seconds in self._seconds.items()}
        shares["rest"] = max(0.0, 1.0 - sum(shares.values()))
        self._seconds, self._began = {}, now
        return total, shares
