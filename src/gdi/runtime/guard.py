"""The guard of a run folder while a run writes to it: someone may remove or replace the folder meanwhile."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from gdi.errors import StorageError, UserError
from gdi.runtime.folder import CHANGED, CONFIG, write_config
from gdi.runtime.lock import RunLock
from gdi.runtime.seal import is_sealed
from gdi.runtime.storage import read_bytes, writing


class FolderGuard:
    """The folder of a running run, its lock and its config, which are made again if they are gone."""

    def __init__(self, run_dir: Path, lock: RunLock, holder: str) -> None:
        self.run_dir, self._lock, self._holder = run_dir, lock, holder
        self._config = read_bytes(run_dir / CONFIG)
        self._sealed = is_sealed(run_dir, self._config)
        self._folder = os.open(run_dir, os.O_RDONLY)  # while it is open, no other folder has its number

    @property
    def config_hash(self) -> str:
        """Return the SHA-256 of ``config.json`` as this run began with it."""
        return hashlib.sha256(self._config).hexdigest()

    def check_config(self, saved: str | None) -> None:
        """Raise UserError if ``config.json`` is not the one of a checkpoint; ``saved`` is the hash in its manifest."""
        if saved is not None and saved != self.config_hash:
            raise UserError(CHANGED.format(self.run_dir))

    def check(self) -> list[str]:
        """Make the folder, its lock and its config again if they are gone; return what was.

        Raise StorageError if another folder has taken the place of this one.
        """
        with writing(self.run_dir):
            gone = self._check_folder()
            if not self._lock.is_in_place:
                gone.append(".lock")
                self._lock_again()
            if not (self.run_dir / CONFIG).exists():
                gone.append(CONFIG)
                write_config(self.run_dir, self._config, seal=self._sealed)
        return gone

    def _check_folder(self) -> list[str]:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._folder), os.stat(self.run_dir)):
                return []
            if any(self.run_dir.iterdir()):
                raise self._replaced()
        self.run_dir.mkdir(parents=True, exist_ok=True)
        os.close(self._folder)
        self._folder = os.open(self.run_dir, os.O_RDONLY)
        return ["the folder"]

    def _lock_again(self) -> None:
        try:
            lock = RunLock(self.run_dir, self._holder)
        except UserError:  # another run has begun there
            raise self._replaced() from None
        self._lock.close()
        self._lock = lock

    def _replaced(self) -> StorageError:
        return StorageError(
            f"{self.run_dir} was replaced by another folder: this run stops, because writing to it would mix two runs. "
            "What was not moved elsewhere is lost."
        )

    def close(self) -> None:
        self._lock.close()
        os.close(self._folder)
