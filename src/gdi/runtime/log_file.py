"""One append-only file of the run log, with a rolling hash that shows later damage."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from gdi.runtime.storage import open_to_write, replace_file

CHUNK = 1 << 20


class LogFile:
    """A file to which a run only appends, and which a resumed run continues at its checkpoint's position."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_to_write(path)
        self._file.seek(0, os.SEEK_END)
        self._digest = hashlib.sha256()  # of everything up to the current end; ``rewind`` counts what was there before

    @property
    def size(self) -> int:
        return self._file.tell()

    def write(self, text: str) -> None:
        content = text.encode()
        self._file.write(content)
        self._digest.update(content)

    def flush(self) -> None:
        self._file.flush()

    def sync(self) -> tuple[int, str]:
        """Sync the file to disk, and return its size and hash, so that a checkpoint never points past it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.size, self._digest.hexdigest()

    def rewind(self, end: int, digest: str | None) -> str | None:
        """Drop everything after ``end``, because the resumed run writes it again. Return the damage before it.

        A shorter file is cut after its last whole line. An altered one is kept as it is.
        """
        self._file.flush()
        found = os.fstat(self._file.fileno()).st_size
        keep = end if found >= end else self._end_of_lines()
        self._file.truncate(keep)
        self._hash_all()
        if found < end:
            return f"{end - keep:,} of {end:,} bytes are lost" if keep else "it is lost"
        if digest is not None and self._digest.hexdigest() != digest:
            return "it was changed after it was written"
        return None

    def restore(self) -> bool:
        """Write the whole file again if it is no longer in its folder; return True if it was not."""
        self._file.flush()
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self.path)):
                return False
        self._file.seek(0)
        content = self._file.read()
        self._file.close()
        replace_file(self.path, content)
        self._file = open_to_write(self.path)
        self._file.seek(0, os.SEEK_END)
        return True

    def close(self) -> None:
        # What a full disk does not take is newer than the newest checkpoint, so a resumed run writes it again.
        with suppress(OSError):
            self._file.close()

    def _end_of_lines(self) -> int:
        """Return the position after the last whole line."""
        self._file.seek(0)
        return sum(len(line) for line in self._file if line.endswith(b"\n"))

    def _hash_all(self) -> None:
        """Hash the whole file, and leave the position at its end."""
        self._digest = hashlib.sha256()
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            self._digest.update(chunk)
