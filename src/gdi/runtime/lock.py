"""A lock on the run folder.

A second process would truncate the logs of the first one and mix up their checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gdi.errors import UserError

try:
    import fcntl
except ImportError:  # Windows has no fcntl, so no lock is taken there.
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def run_lock(run_dir: Path, holder: str = "") -> Iterator[None]:
    """Lock the folder inside the ``with`` block; the kernel releases the lock when the process dies.

    While the lock is held, ``lock_holder`` returns ``holder``.
    """
    try:
        file = (run_dir / LOCK).open("a")
    except OSError as error:
        raise UserError(f"{run_dir} is not writable: {error.strerror}.") from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{run_dir} is being trained by another process: wait for it or stop it.") from None
        file.truncate(0)
        file.write(holder)
        file.flush()
        yield


def lock_holder(run_dir: Path) -> str | None:
    """Return the holder of the folder's lock, or None if no process trains there.

    On a system without locks, return the last holder.
    """
    path = run_dir / LOCK
    if not path.exists():
        return None
    with path.open() as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                pass
        return file.read()
