"""Stopping on a signal: the first one asks to save and stop, the second one acts at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stop:
    """A request to save and stop, by the number of the signal that made it."""

    signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None


@contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """Yield a check for SIGINT or SIGTERM, which make the run save and stop.

    A second signal, of either kind, acts as it did before, which usually ends the process at once.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread receives signals. In any other thread, stopping is up to the caller.
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: Any) -> None:
        stop.signal = number
        restore()

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        restore()
