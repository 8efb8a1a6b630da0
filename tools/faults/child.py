"""A child process that runs a function, with its output in files.

It is forked, so it need not import torch again. Hundreds of kills therefore take minutes, not hours.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RAISED = 70  # the exit code of a child whose function raised
PATIENCE_SECONDS = 30.0  # after Ctrl-C


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int  # negative: the signal that ended it
    out: str
    err: str
    hung: bool = False

    @property
    def has_traceback(self) -> bool:
        return self.code == RAISED or "Traceback (most recent call last)" in self.err

    @property
    def is_one_line(self) -> bool:
        """Return True if it ended as bad input or a full disk should end."""
        return self.code in (1, 2) and self.err.count("\n") == 1


class Child:
    """A running child."""

    def __init__(self, work: Callable[[], int], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._out, self._err = folder / "out", folder / "err"
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        self._status: int | None = None
        if self.pid == 0:
            self._run(work)

    def _run(self, work: Callable[[], int]) -> None:
        code = RAISED
        try:
            os.setsid()
            for number, path in ((1, self._out), (2, self._err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
            sys.stdout = os.fdopen(1, "w", encoding="utf-8")  # a parent such as pytest has put its own in their place
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = work()
        except BaseException:  # whatever it is, the campaign counts it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def has_ended(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def send(self, number: int) -> None:
        if not self.has_ended():
            os.kill(self.pid, number)

    def wait(self, seconds: float) -> Ended:
        """Wait for its end. After the time ask it to stop by Ctrl-C; if it does not, it hangs."""
        hung = False
        if not self._ends_within(seconds):
            self.send(signal.SIGINT)
            if not self._ends_within(PATIENCE_SECONDS):
                hung = True
                self.send(signal.SIGKILL)
                self._ends_within(PATIENCE_SECONDS)
        code = os.waitstatus_to_exitcode(self._status or 0)
        return Ended(code, self._out.read_text(errors="replace"), self._err.read_text(errors="replace"), hung)

    def _ends_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.has_ended():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True


def run_child(work: Callable[[], int], folder: Path, seconds: float = 60.0) -> Ended:
    """Run a function in a child, and return how it ended."""
    return Child(work, folder).wait(seconds)
