"""One attempt at a job, as a program: it reads an order from its standard input, trains, and prints the steps done.

The driver starts ``python -m gdi.sweep.worker``. On SIGTERM a run saves itself and ends, and the next attempt continues
it. If the driver dies, the standard input ends, and the worker stops as on SIGTERM. If the claim is lost to another
process, the worker ends at once, because two processes must not write to one folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from gdi.errors import DivergenceError, StorageError, UserError
from gdi.sweep.claim import HEARTBEAT_SECONDS, Claim
from gdi.sweep.files import write_whole
from gdi.sweep.holder import Holder
from gdi.sweep.process import BAD_INPUT, NO_DISK
from gdi.sweep.status import OUTCOME

REPORT_EVERY_SECONDS = 1.0
Report = Callable[[int], None]


def run_job(order: Mapping[str, Any], report: Report) -> None:
    """Train a job to its end, or until a signal stops it. A divergence is a result, and is noted as one."""
    folder = Path(order["folder"])
    if order["peer"] is not None:
        from gdi.sweep.peers import run_peer

        run_peer(folder, settings=order["settings"], report=report, **order["peer"])
        return
    try:
        train_gdi(order["words"], folder, report)
    except DivergenceError as error:
        note_divergence(folder, str(error))


def train_gdi(words: list[str], folder: Path, report: Report) -> None:
    """Train a run, or continue it, by the code of ``gdi train``."""
    from gdi.api import train
    from gdi.cli.train import parse
    from gdi.report.console import NullConsole
    from gdi.runtime.events import Event

    class StepReporter(NullConsole):
        """A console that passes on a run's steps."""

        def event(self, event: Event) -> None:
            if event["kind"] in ("start", "progress"):
                report(event["steps"])

    train(parse(words).config, folder, resume=True, console=StepReporter())


def note_divergence(folder: Path, why: str) -> None:
    """Note in the run folder that the run diverged, and at which step its log ends."""
    from gdi.runtime.run_log import read_metrics

    steps = max((int(line["steps"]) for line in read_metrics(folder, "train")), default=0)
    content = {"status": "diverged", "steps": steps, "message": why}
    write_whole(folder / OUTCOME, json.dumps(content) + "\n")


def make_reporter(stream: TextIO) -> Report:
    """Return a function that prints the steps, immediately at first and then at most once per second."""
    last = -REPORT_EVERY_SECONDS

    def report(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_EVERY_SECONDS:
            last = time.monotonic()
            try:
                print(steps, file=stream, flush=True)
            except OSError:  # the driver is gone, and the end of the standard input says so
                pass

    return report


def watch_driver() -> None:
    """Stop this process in order when its driver is gone.

    It reads the descriptor, because a thread that holds the lock of ``sys.stdin`` would disturb the exit.
    """
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def keep_claim(claim: Claim) -> None:
    """Give signs of life, and end this process at once when another has taken its job."""
    while claim.beat():
        time.sleep(HEARTBEAT_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Run one job; return 0 if it ended or was stopped in order."""
    order = json.loads(sys.stdin.readline() or "null")
    if order is None:  # the driver was killed before it said what to do
        return 0
    claim = Claim(Path(order["claim"]), order["token"])
    if not claim.is_mine():
        return 0
    claim.adopt([Holder(**order["driver"]), Holder.me()])
    threading.Thread(target=watch_driver, daemon=True).start()
    threading.Thread(target=keep_claim, args=(claim,), daemon=True).start()
    try:
        run_job(order, make_reporter(sys.stdout))
    except StorageError as error:
        print(error, file=sys.stderr)
        return NO_DISK
    except UserError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
