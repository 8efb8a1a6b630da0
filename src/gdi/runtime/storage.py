"""Reading and writing files of a run folder: no links, no waiting on a pipe, and one line if the disk refuses."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gdi.errors import StorageError, UserError

# Of the files that a run writes.
WRITTEN_SUFFIXES = (".json", ".jsonl", ".csv", ".npz")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# Windows has neither flag.
NO_LINK, NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file. Anything else, such as a pipe, is an OSError at once."""
    descriptor = os.open(path, flags | NO_WAIT | getattr(os, "O_CLOEXEC", 0), 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()


def read_json(path: Path) -> Any:
    """Return the JSON in a regular file; ValueError says what is wrong with it."""
    try:
        return json.loads(read_bytes(path))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def open_to_write(path: Path, more: int = 0) -> BinaryIO:
    """Open a regular file of a run for reading and writing, and make it if it is missing. A link is an OSError."""
    return os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT | NO_LINK | more), "r+b")


def replace_file(path: Path, content: bytes) -> None:
    """Write a whole file or nothing: under another name, synced, then renamed."""
    part = path.with_name(f".{path.name.lstrip('.')}.part")
    part.unlink(missing_ok=True)
    with open_to_write(part) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise StorageError, with one line, if the disk refuses a write inside the ``with`` block."""
    try:
        yield
    except OSError as error:
        raise storage_error(folder, error) from error


def storage_error(folder: Path, error: OSError) -> StorageError:
    """Return the one line for a refused write."""
    when = "there is room" if error.errno in NO_ROOM else "it can be written"
    where = error.filename or folder
    return StorageError(f"{where} cannot be written: {error.strerror or error}: resume when {when}.")


def check_files(run_dir: Path) -> None:
    """Raise UserError if the run folder has a link, or something else than a file in the place of one."""
    for folder, folders, files in os.walk(run_dir):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink():
                raise UserError(
                    f"{path} is a link to {os.readlink(path)}: a run writes only to its own files. Replace the link by "
                    "what it points to."
                )
            if path.suffix in WRITTEN_SUFFIXES and not path.is_file():
                raise UserError(f"{path} is not a regular file: move it away, because the run writes a file there.")
