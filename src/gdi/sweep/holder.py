"""The processes that hold a claim, and whether one of them is known to be dead."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """A process: its machine, its number there, and when it began, because numbers are used again."""

    host: str
    pid: int
    began: str

    @classmethod
    def me(cls) -> Holder:
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Holder:
        """Return a process of this machine."""
        return cls(machine(), pid, _began(pid) or "")


@lru_cache(maxsize=1)
def machine() -> str:
    """Return a name for this machine since it booted.

    Containers of one machine may share its name, and have other numbers for the same processes.
    """
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def is_dead(holder: Holder) -> bool:
    """Return True if the process is known to be dead. Nothing is known about those of other machines."""
    return holder.host == machine() and _began(holder.pid) != holder.began


def _began(pid: int) -> str | None:
    """Return when a process of this machine began, or None if it has ended.

    Without /proc the answer is empty for every living process.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None if Path("/proc/self/stat").exists() or not _answers(pid) else ""
    state, *fields = text.rpartition(")")[2].split()
    return None if state in ("Z", "X") else fields[18]


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
