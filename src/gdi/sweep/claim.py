"""Claims on jobs: which process works on a job, on one machine or on several that share a folder.

A claim is a file ``<name>.<generation>``. Whoever creates the next generation with O_EXCL holds the name, so of two
processes that see the same free claim only one can win. No rename is needed, which could move a newer claim away.
The file says which processes hold it. They touch it as a heartbeat, and set its time to 0 to release it.

File locks of the kernel are not used here, because not every shared file system has them.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from gdi.runtime.storage import open_regular, storage_error
from gdi.sweep.holder import Holder, is_dead

HEARTBEAT_SECONDS = 10.0
# A claim without a heartbeat for so long is free. Six heartbeats may be late or lost.
STALE_SECONDS = 60.0
# A holder that could not give a sign of life for so long lets go, before another may take its claim.
LOST_SECONDS = STALE_SECONDS - HEARTBEAT_SECONDS
# Older generations than these are removed. A process that is slow would have to sleep through all of them.
KEPT_GENERATIONS = 16
CLOCK = ".clock"


@dataclass(frozen=True)
class ClaimState:
    """What a claim's file says."""

    is_free: bool
    holders: tuple[Holder, ...] = ()
    beat: float = 0.0  # the time of the newest sign of life


class Claim:
    """A claim that this process, or its parent, holds."""

    def __init__(self, path: Path, token: str) -> None:
        self.path, self.token = path, token
        self._last_beat = time.monotonic()

    def beat(self) -> bool:
        """Give a sign of life; return False if the claim is lost to another process.

        A disk that fails for a moment may work at the next attempt. The claim is lost if it fails until others may take
        it.
        """
        try:
            if not self.is_mine():
                return False
            os.utime(self.path)
        except OSError:
            return time.monotonic() - self._last_beat < LOST_SECONDS
        self._last_beat = time.monotonic()
        return True

    def is_mine(self) -> bool:
        """Return True if no newer claim exists, and the file is still the one that was created."""
        name, _, generation = self.path.name.rpartition(".")
        newest = newest_generations(self.path.parent).get(name, 0)
        return newest == int(generation) and _read(self.path)[1] in (self.token, "")

    def adopt(self, holders: Sequence[Holder]) -> None:
        """Name the processes that hold the claim."""
        _write(self.path, os.O_WRONLY, holders, self.token)

    def release(self) -> None:
        """Free the claim. This needs no room on the disk, and no other process has to notice.

        If the disk fails, the claim frees itself when its heartbeats stop.
        """
        with suppress(OSError):
            if self.is_mine():
                os.utime(self.path, (0, 0))


class Claims:
    """The claims in a folder."""

    def __init__(self, folder: Path, stale_seconds: float = STALE_SECONDS) -> None:
        self.folder, self._stale_seconds = folder, stale_seconds

    def acquire(self, name: str) -> Claim | None:
        """Claim a name for this process; return None if another process holds it or was faster."""
        try:
            return self._acquire(name)
        except OSError as error:
            raise storage_error(self.folder, error) from None

    def _acquire(self, name: str) -> Claim | None:
        self.folder.mkdir(parents=True, exist_ok=True)
        newest = newest_generations(self.folder).get(name, 0)
        if newest and not self._state(self._path(name, newest)).is_free:
            return None
        path, token = self._path(name, newest + 1), secrets.token_hex(8)
        try:
            _write(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, [Holder.me()], token)
        except FileExistsError:
            return None
        # This process may have slept since it read the newest generation, and older ones are removed.
        if newest_generations(self.folder).get(name) != newest + 1:
            path.unlink(missing_ok=True)
            return None
        self._remove_old(name, newest + 1)
        return Claim(path, token)

    def state(self, name: str) -> ClaimState:
        """Return whether a name is free, and who holds it otherwise."""
        try:
            newest = newest_generations(self.folder).get(name, 0) if self.folder.is_dir() else 0
            return self._state(self._path(name, newest)) if newest else ClaimState(is_free=True)
        except OSError as error:
            raise storage_error(self.folder, error) from None

    def _state(self, path: Path) -> ClaimState:
        try:
            seconds, _, holders = _read(path)
        except FileNotFoundError:  # a newer generation is there, and this one was removed
            return ClaimState(is_free=False)
        if seconds == 0 or self._now() - seconds > self._stale_seconds:
            return ClaimState(is_free=True, holders=holders, beat=seconds)
        return ClaimState(is_free=bool(holders) and all(map(is_dead, holders)), holders=holders, beat=seconds)

    def _now(self) -> float:
        """Return the time of the file system, because clocks of other machines may differ.

        A folder that cannot be written leaves the clock of this machine.
        """
        path = self.folder / CLOCK
        with suppress(OSError):
            path.touch()
            return path.stat().st_mtime
        return time.time()

    def _path(self, name: str, generation: int) -> Path:
        return self.folder / f"{name}.{generation}"

    def _remove_old(self, name: str, newest: int) -> None:
        for path in self.folder.iterdir():
            stem, _, generation = path.name.rpartition(".")
            if stem == name and generation.isdecimal() and int(generation) <= newest - KEPT_GENERATIONS:
                path.unlink(missing_ok=True)


def newest_generations(folder: Path) -> dict[str, int]:
    """Return the newest generation of each claim in a folder."""
    found: dict[str, int] = {}
    for file in os.listdir(folder):
        name, _, generation = file.rpartition(".")
        if name and generation.isdecimal():
            found[name] = max(found.get(name, 0), int(generation))
    return found


def _read(path: Path) -> tuple[float, str, tuple[Holder, ...]]:
    """Return a claim's time, token and holders. A file that is being written has neither of the last two."""
    # On a network file system, opening a file makes its time current.
    with os.fdopen(open_regular(path), encoding="utf-8", errors="replace") as file:
        text, seconds = file.read(), os.fstat(file.fileno()).st_mtime
    try:
        content = json.loads(text)
        return seconds, str(content["token"]), tuple(Holder(**holder) for holder in content["holders"])
    except (ValueError, KeyError, TypeError):
        return seconds, "", ()


def _write(path: Path, flags: int, holders: Sequence[Holder], token: str) -> None:
    content = json.dumps({"token": token, "holders": [asdict(holder) for holder in holders]})
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        file.write(content.encode())
        file.truncate()
