"""One attempt at a job in its own process, which trains and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gdi.sweep.claim import Claim
from gdi.sweep.files import LOGS
from gdi.sweep.holder import Holder
from gdi.sweep.jobs import Job
from gdi.runtime.storage import storage_error

# Exit codes of a worker, besides 0 and those of a crash.
BAD_INPUT, NO_DISK = 2, 74
LONGEST_MESSAGE = 300


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


@dataclass
class Process:
    """An attempt in a process of this machine.

    A thread reads the steps from its standard output. Its errors go to a file. Its standard input stays open, so that
    it sees the end of this process.
    """

    sweep: Path
    job: Job
    claim: Claim
    steps: int = 0
    _process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.sweep / LOGS / f"{self.job.name}.log"
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("w", encoding="utf-8") as errors:
                # A separate session: Ctrl-C reaches only the driver, which then stops its workers in order.
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "gdi.sweep.worker"],
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,
                )
        except OSError as error:
            raise storage_error(self.log.parent, error) from None
        self._send_order()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _send_order(self) -> None:
        assert self._process.stdin is not None
        try:
            print(order(self.sweep, self.job, self.claim), file=self._process.stdin, flush=True)
        except BrokenPipeError:  # it has died, and its exit code says how
            pass

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip().isdecimal():
                self.steps = int(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._close()
        return code

    def _close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._reader.join()

    def message(self) -> str:
        code = self.exit_code()
        lines = [line for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].strip()[:LONGEST_MESSAGE]
        if code is not None and code < 0:
            return f"ended by {signal.Signals(-code).name}"
        return "another process stopped it"

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._close()


def order(sweep: Path, job: Job, claim: Claim) -> str:
    """Return the line that a worker reads: what to train, and which claim it works under."""
    content = {
        "folder": str(job.folder(sweep).absolute()),
        "words": job.words(),
        "peer": {"preset": job.preset, "env": job.env, "seed": job.seed, "steps": job.steps} if job.is_peer else None,
        "settings": dict(job.settings),
        "claim": str(claim.path.absolute()),
        "token": claim.token,
        "driver": Holder.me().__dict__,
    }
    return json.dumps(content)
