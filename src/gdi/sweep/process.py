"""One attempt at a job in its own process, which trains and ends.

The process is forked from a server that has imported torch already. Every job would need seconds for it otherwise.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from gdi.runtime.storage import storage_error
from gdi.sweep.claim import Claim
from gdi.sweep.files import LOGS
from gdi.sweep.holder import Holder, is_dead
from gdi.sweep.jobs import Job
from gdi.sweep.worker import Order, work

LONGEST_MESSAGE = 300
# What the server imports, and what it imports for an environment or a preset whose name begins so. Only PyTorch's own
# optimizers, which the peers use, need its compiler. Without it and MinAtar's drawing library it starts twice as fast.
IMPORTS = ("gdi.api", "gdi.cli.train")
IMPORTS_FOR = {"MinAtar/": ("gdi.envs.minatar",), "ALE/": ("ale_py",), "sb3-": ("torch._dynamo", "gdi.sweep.peers")}


class Attempt(Protocol):
    """A running attempt at a job."""

    @property
    def steps(self) -> int:
        """Return the steps that the run has reached."""
        ...

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the attempt runs."""
        ...

    def message(self) -> str:
        """Return the last line of its errors."""
        ...

    def stop(self) -> None:
        """Ask it to save and end."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


class Process:
    """An attempt in a process of this machine.

    A pipe brings the steps. Its other end tells the process when this one has died. Errors go to a file.
    """

    def __init__(self, sweep: Path, job: Job, claim: Claim) -> None:
        self._log = sweep / LOGS / f"{job.name}.log"
        self._steps = 0
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.touch()
            self._log_begin = self._log.stat().st_size  # earlier attempts stay in it
        except OSError as error:
            raise storage_error(self._log.parent, error) from None
        context = get_context("forkserver")
        self._pipe, theirs = context.Pipe()
        order = Order(job, sweep.absolute(), self._log.absolute(), claim.path.absolute(), claim.token, Holder.me())
        self._process = context.Process(target=work, args=(order, theirs))
        with one_thread():
            self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.holder = Holder.of(self._process.pid)

    @property
    def steps(self) -> int:
        with suppress(EOFError, OSError):
            while self._pipe.poll():
                self._steps = int(self._pipe.recv())
        return self._steps

    def exit_code(self) -> int | None:
        code = self._process.exitcode
        if code is not None and not is_dead(self.holder):  # it has outlived the server, which knew its code
            self.kill()
        return code

    def message(self) -> str:
        return last_line(self._log, self._log_begin) or describe(self._process.exitcode)

    def stop(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.join()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if not is_dead(self.holder):
                os.kill(self.holder.pid, number)


def last_line(log: Path, begin: int = 0) -> str:
    """Return the last line of a file, from a position on, that is not empty."""
    try:
        text = log.read_bytes()[begin:].decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:LONGEST_MESSAGE] if lines else ""


def describe(code: int | None) -> str:
    """Return what an exit code says about a process that left no message."""
    if code is None or code >= 0:
        return "another process stopped it"
    return f"ended by {signal.Signals(-code).name}"


def import_early(jobs: Iterable[Job]) -> None:
    """Let the server import what these jobs need. It works only before the first attempt."""
    names = {name for job in jobs for name in IMPORTS_FOR if job.env.startswith(name) or job.preset.startswith(name)}
    found = [module for name in sorted(names) for module in IMPORTS_FOR[name]]
    get_context("forkserver").set_forkserver_preload([*IMPORTS, *found])


@contextmanager
def one_thread() -> Iterator[None]:
    """Let a server that starts inside the ``with`` block, and all its processes, compute with one thread each.

    Two threads beside one busy process made a run three times as slow.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
