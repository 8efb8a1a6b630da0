"""The files of a running run: its folder, its logs and its checkpoints, written so that no failure goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gdi.errors import StorageError
from gdi.runtime.checkpoint import CheckpointStore, SaveReplay
from gdi.runtime.events import ResumableSink
from gdi.runtime.guard import FolderGuard
from gdi.runtime.manifest import Facts
from gdi.runtime.storage import writing
from gdi.types import State


class RunFiles:
    """The folder, the logs and the checkpoints of one run."""

    def __init__(
        self, guard: FolderGuard, log: ResumableSink, checkpoints: CheckpointStore, notice: Callable[[str], None]
    ) -> None:
        self.checkpoints = checkpoints
        self._guard, self._log, self._notice = guard, log, notice
        self.must_save = False  # because files were gone, and the checkpoints may be too

    @property
    def folder(self) -> Path:
        return self._guard.run_dir

    def newest(self) -> State | None:
        """Return the newest complete checkpoint, or None; raise UserError if the config is no longer its own."""
        state = self.checkpoints.newest()
        self._guard.check_config(self.checkpoints.facts.config)
        return state

    def rewind(self, position: State) -> None:
        """Continue the logs at the position in the newest checkpoint, and report what is damaged before it."""
        for damage in self._log.rewind(position, self.checkpoints.facts.logs):
            self._notice(damage)

    def restore(self) -> bool:
        """Make again what is gone from the folder; return True if anything was."""
        gone = [*self._guard.check(), *self._log.restore()]
        if gone:
            self.must_save = True
            self._notice(
                f"{self.folder} lost {', '.join(gone)} while the run wrote to it: made again. Checkpoints that are "
                "gone stay lost."
            )
        return bool(gone)

    def save(
        self,
        steps: int,
        updates: int,
        make: Callable[[State], State],
        *,
        best: bool,
        save_replay: SaveReplay | None,
    ) -> Path:
        """Write a checkpoint; ``make`` returns the state for the position of the logs."""

        def write() -> Path:
            position, logs = self._log.position()
            state, facts = make(position), Facts(self._guard.config_hash, logs)
            with writing(self.folder):
                return self.checkpoints.save(steps, updates, state, best=best, save_replay=save_replay, facts=facts)

        self.restore()
        try:
            path = write()
        except StorageError:
            if not self.restore():
                raise
            path = write()  # the folder was removed in this moment
        self.must_save = False
        return path

    def mark_best(self, path: Path) -> None:
        with writing(self.folder):
            self.checkpoints.mark_best(path)
