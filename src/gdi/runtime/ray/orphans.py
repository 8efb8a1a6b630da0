"""Ends the agents of a run's own Ray if the driver dies without ending them, for example by SIGKILL.

The kernel then kills Ray's servers, and Ray's workers notice it. Ray's two agents would live on for a minute, because
they report the death to a server that is dead as well. This file is also the program that waits for the driver's death.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def no_orphans() -> Iterator[None]:
    """Let the agents of the Ray that this process started die with this process inside the ``with`` block."""
    raylets = [child for child in _children(os.getpid()) if _read(Path(f"/proc/{child}/comm")) == "raylet\n"]
    agents = [agent for raylet in raylets for child in _children(raylet) for agent in _opened(child)]
    if not agents:  # this is not Linux, or an old one
        yield
        return
    # The watcher has a session of its own, because Ctrl-C reaches every process in the session of a terminal.
    watcher = subprocess.Popen(
        [sys.executable, "-IS", __file__, *map(str, agents)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=agents,
        start_new_session=True,
    )
    for agent in agents:
        os.close(agent)
    try:
        yield
    finally:
        watcher.communicate()


def _children(pid: int) -> list[int]:
    """Return the children of a process. Only Linux tells them here."""
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in _read(path).split()]


def _read(path: Path) -> str:
    with suppress(OSError):  # the process or its thread has ended
        return path.read_text()
    return ""


def _opened(pid: int) -> list[int]:
    """Return a descriptor of a process. Unlike its number, no later process gets it."""
    with suppress(OSError):  # the process has ended, or the kernel is older than 5.3
        return [os.pidfd_open(pid)]
    return []


def main() -> None:
    """Wait until the driver's end of the pipe is closed, which its death does too. Then kill the given processes."""
    sys.stdin.read()
    for agent in map(int, sys.argv[1:]):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(agent, signal.SIGKILL)


if __name__ == "__main__":
    main()
