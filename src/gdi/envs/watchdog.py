"""Calls with a time limit, for environments that may hang.

Python cannot stop a function that hangs. So the function runs in a thread of its own, and the caller waits only so
long. A thread that is late is abandoned: it ends when its function returns, or with the process. A function in C that
never releases Python's lock stops the waiting caller as well. Only a process of its own protects from that.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any


class HangError(Exception):
    """A call that did not return in time, and the stack of its thread at that moment."""

    def __init__(self, message: str, stack: str = "") -> None:
        super().__init__(message)
        self.stack = stack


class Watchdog:
    """A thread that makes calls one after another, for a caller who waits ``seconds`` for each."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls: SimpleQueue[tuple[Callable[..., Any], Any] | None] | None = None
        self._answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the function returns, or raise its error. Raise HangError if it takes too long."""
        if self._calls is None:
            self._calls, self._answers = SimpleQueue(), SimpleQueue()
            # A daemon does not keep the process alive.
            self._thread = threading.Thread(target=_serve, args=(self._calls, self._answers), daemon=True)
            self._thread.start()
        self._calls.put((function, arguments))
        try:
            result, error = self._answers.get(timeout=self._seconds)
        except Empty:
            self.close()
            raise HangError(f"no answer for {self._seconds:g} s (--env.timeout-seconds)", self._stack()) from None
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """End the thread after its current call. The next call starts another one."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame is not None else ""


def _serve(
    calls: SimpleQueue[tuple[Callable[..., Any], Any] | None], answers: SimpleQueue[tuple[Any, BaseException | None]]
) -> None:
    while (call := calls.get()) is not None:
        function, arguments = call
        try:
            answers.put((function(*arguments), None))
        except BaseException as error:  # the caller raises it
            answers.put((None, error))
