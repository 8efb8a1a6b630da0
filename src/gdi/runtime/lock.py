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

LOCK = ".lock"


@contextmanager
def run_lock(run_dir: Path, holder: str = "") -> Iterator[None]:
    """Hold the folder while inside. The kernel lets go of the lock when a process dies, however it dies.

    ``holder`` is told to whoever asks meanwhile.
    """
    try:
        file = (run_dir / LOCK).open("a")
    except OSError as error:
        raise UserError(f"{run_dir} cannot be written to: {error.strerror}.") from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{run_dir} is being trained by another process: wait for it, or stop it.") from None
        file.truncate(0)
        file.write(holder)
        file.flush()
        yield


def lock_holder(run_dir: Path) -> str | None:
    """Who trains in the folder, None if nobody does. Where there are no locks: who did last."""
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
