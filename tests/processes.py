"""Commands in processes of their own, which tests stop and kill.

Each is forked from the process of the tests, so it need not import torch, which takes two seconds of a core. A test of
how Python starts, such as that of ``python -m gdi``, starts a new one instead.
"""

from __future__ import annotations

import sys
import tempfile
from multiprocessing import forkserver
from pathlib import Path

from gdi.cli.main import main
from gdi.sweep.process import IMPORTS, one_thread

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from faults.child import Child, Ended, run_child
from faults.disks import mount, own_mounts

__all__ = ["CommandProcess", "Ended", "mount", "own_mounts", "run_child", "start_server"]

PATIENCE_SECONDS = 300.0


def start_server() -> None:
    """Start the server from which multiprocessing forks, or keep the one that runs."""
    forkserver.set_forkserver_preload([*IMPORTS, "gdi.envs.minatar"])
    with one_thread():
        forkserver.ensure_running()


class CommandProcess:
    """A ``gdi`` command in a process that a signal may end."""

    def __init__(self, *words: str) -> None:
        start_server()
        self._words = words
        self._child = Child(self._run, Path(tempfile.mkdtemp()))

    def _run(self) -> int:
        sys.argv = ["gdi", *self._words]
        # The server is not a child of this process, which would take it for dead.
        forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]
        return main()

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, number: int) -> None:
        self._child.send(number)

    def has_ended(self) -> bool:
        return self._child.has_ended()

    def end(self) -> tuple[int, str, str]:
        """Wait for its end. Return its exit code, negative for a signal, and what it printed."""
        ended = self._child.wait(PATIENCE_SECONDS)
        assert not ended.hung
        return ended.code, ended.out, ended.err
