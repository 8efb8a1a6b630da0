"""One process per run folder: a second one would cut the first one's logs and mix their checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gdi.errors import UserError

try:
    import fcntl
except ImportError:  # Windows; there the lock is not taken
    fcntl = None  # type: ignore[assignment]


@contextmanager
def run_lock(run_dir: Path) -> Iterator[None]:
    """Hold the folder while inside. The kernel lets go of the lock when a process dies, however it dies."""
    try:
        file = (run_dir / ".lock").open("w")
    except OSError as error:
        raise UserError(f"{run_dir} cannot be written to: {error.strerror}.") from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{run_dir} is being trained by another process: wait for it, or stop it.") from None
        yield


def is_locked(run_dir: Path) -> bool:
    """True while a process trains in the folder. Where there are no locks, nobody can tell: true, too."""
    if fcntl is None:
        return True
    try:
        with run_lock(run_dir):
            return False
    except UserError:
        return True
