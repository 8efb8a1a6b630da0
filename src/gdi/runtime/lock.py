"""A lock on the run folder.

A second process would truncate the logs of the first one and mix up their checkpoints.
"""

from __future__ import annotations

import os
from pathlib import Path

from gdi.errors import UserError
from gdi.runtime.storage import NO_LINK, open_regular, storage_error

try:
    import fcntl
except ImportError:  # Windows has no fcntl, so no lock is taken there.
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


class RunLock:
    """A held lock; the kernel releases it when the process dies. Meanwhile ``lock_holder`` returns ``holder``."""

    def __init__(self, run_dir: Path, holder: str = "") -> None:
        self._path = run_dir / LOCK
        try:
            self._file = open_regular(self._path, os.O_RDWR | os.O_CREAT | NO_LINK)
        except OSError as error:
            raise UserError(f"{run_dir} is not writable: {error.strerror}.") from None
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(self._file, 0)
            os.write(self._file, holder.encode())
        except BlockingIOError:
            self.close()
            raise UserError(f"{run_dir} is being trained by another process: wait for it or stop it.") from None
        except OSError as error:
            self.close()
            raise storage_error(self._path, error) from None

    @property
    def is_in_place(self) -> bool:
        """Return True if the file of this lock is still in the folder."""
        try:
            return os.path.samestat(os.fstat(self._file), os.lstat(self._path))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        os.close(self._file)


def lock_holder(run_dir: Path) -> str | None:
    """Return the holder of the folder's lock, or None if no process trains there.

    On a system without locks, return the last holder.
    """
    path = run_dir / LOCK
    if not path.exists():
        return None
    with os.fdopen(open_regular(path), encoding="utf-8") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                pass
        return file.read()
