"""The processes that hold a claim, and whether one of them is known to be dead."""

from __future__ import annotations

import hashlib
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

    @property
    def label(self) -> str:
        """A name of this process that may be part of a file's name."""
        return f"{_machine_digest(self.host)}-{self.pid}-{self.began}"


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


def is_label_of_dead(label: str) -> bool:
    """Return True if the label is of a process of this machine that has ended."""
    digest, _, process = label.partition("-")
    number, _, began = process.partition("-")
    if digest != _machine_digest(machine()) or not number.isdecimal():
        return False
    return is_dead(Holder(machine(), int(number), began))


def _machine_digest(host: str) -> str:
    return hashlib.sha256(host.encode()).hexdigest()[:8]


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
