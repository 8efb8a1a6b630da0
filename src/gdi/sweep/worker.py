"""One attempt at a job: a process that trains it, reports the steps done, and ends.

On SIGTERM a run saves itself and ends, and the next attempt continues it. If the driver dies, its end of the pipe
closes, and the worker stops as on SIGTERM. If the claim is lost to another process, the worker ends at once, because
two processes must not write to one folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from gdi.errors import DivergenceError, StorageError, UserError
from gdi.sweep.claim import HEARTBEAT_SECONDS, Claim
from gdi.sweep.files import write_whole
from gdi.sweep.holder import Holder
from gdi.sweep.jobs import Job, config_of
from gdi.sweep.status import OUTCOME

# Exit codes besides 0 and those of a crash.
BAD_INPUT, NO_DISK = 2, 74
REPORT_EVERY_SECONDS = 1.0
Report = Callable[[int], None]


@dataclass(frozen=True)
class Order:
    """What a worker has to do, and under which claim."""

    job: Job
    sweep: Path
    log: Path
    claim: Path
    token: str
    driver: Holder


def work(order: Order, pipe: Connection) -> None:
    """Carry out an order, as the whole work of a process."""
    os.setsid()  # Ctrl-C reaches only the driver, which then stops its workers in order
    write_to(order.log)
    claim = Claim(order.claim, order.token)
    if not claim.is_mine():
        return
    claim.adopt([order.driver, Holder.me()])
    threading.Thread(target=watch_driver, args=(pipe,), daemon=True).start()
    threading.Thread(target=keep_claim, args=(claim,), daemon=True).start()
    try:
        run_job(order.job, order.job.folder(order.sweep), make_reporter(pipe))
    except (StorageError, UserError) as error:
        print(error, file=sys.stderr)
        sys.exit(NO_DISK if isinstance(error, StorageError) else BAD_INPUT)


def write_to(log: Path) -> None:
    """Send everything that this process prints to a file."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    os.close(file)
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115  # for the whole process
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def run_job(job: Job, folder: Path, report: Report) -> None:
    """Train a job to its end, or until a signal stops it. A divergence is a result, and is noted as one.

    The log says how it ended, so that it shows if a job was ever trained twice.
    """
    reached = 0

    def note(steps: int) -> None:
        nonlocal reached
        reached = steps
        report(steps)

    try:
        if job.is_peer:
            from gdi.sweep.peers import run_peer

            run_peer(job, folder, note)
            ended = "finished"
        else:
            ended = "finished" if train_gdi(job, folder, note) else "stopped"
    except DivergenceError as error:
        content = {"status": "diverged", "steps": reached, "message": str(error)}
        write_whole(folder / OUTCOME, json.dumps(content) + "\n")
        ended = "diverged"
    print(f"{job}: {ended}")


def train_gdi(job: Job, folder: Path, report: Report) -> bool:
    """Train a run, or continue it, by the code of ``gdi train``; return False if it was stopped."""
    from gdi.api import train
    from gdi.report.console import NullConsole
    from gdi.runtime.events import Event

    class StepReporter(NullConsole):
        """A console that passes on a run's steps."""

        def event(self, event: Event) -> None:
            if event["kind"] in ("start", "progress"):
                report(event["steps"])

    return train(config_of(job), folder, resume=True, console=StepReporter()).finished


def make_reporter(pipe: Connection) -> Report:
    """Return a function that sends the steps, immediately at first and then at most once per second."""
    last = -REPORT_EVERY_SECONDS

    def report(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_EVERY_SECONDS:
            last = time.monotonic()
            with suppress(OSError):  # the driver is gone, which the watching thread notices
                pipe.send(steps)

    return report


def watch_driver(pipe: Connection) -> None:
    """Stop this process in order when its driver is gone."""
    with suppress(EOFError, OSError):
        pipe.recv_bytes()  # nothing is ever sent
    os.kill(os.getpid(), signal.SIGTERM)


def keep_claim(claim: Claim) -> None:
    """Give signs of life, and end this process at once when another has taken its job."""
    while claim.beat():
        time.sleep(HEARTBEAT_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
