"""One session of a run: it starts or resumes, survives lost processes, and stops on a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gdi.config import Config, check_new, config_to_json, own_modules
from gdi.errors import EnvironmentFaultError, UserError
from gdi.evaluation import Evaluation, report_of
from gdi.index_space import make_index_space
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.events import SinkList
from gdi.runtime.exceptions import ProcessLostError, StallError
from gdi.runtime.files import RunFiles
from gdi.runtime.folder import CHECKPOINTS, check_run_dir, make_run_dir, write_config
from gdi.runtime.guard import FolderGuard
from gdi.runtime.lock import RunLock
from gdi.runtime.run import Run, System
from gdi.runtime.run_log import RunLog
from gdi.runtime.states import StateRecorder
from gdi.runtime.stopping import Stop, stop_on_signal

# A process may be lost this often before the next checkpoint.
MAX_LOSSES_PER_CHECKPOINT = 3


@dataclass(frozen=True)
class TrainResult:
    """The result of a training run."""

    run_dir: Path
    steps: int
    frames: int
    updates: int
    seconds: float
    finished: bool  # False if a signal stopped the run, which can then be resumed
    evaluation: Evaluation | None
    stopped_by: int | None = None  # that signal

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_dir": str(self.run_dir),
            "steps": self.steps,
            "frames": self.frames,
            "updates": self.updates,
            "seconds": round(self.seconds, 3),
            "finished": self.finished,
            "evaluation": report_of(self.evaluation) if self.evaluation else None,
        }


class Session:
    """Training of a system in a run folder.

    When a process is lost, a new system continues from the newest checkpoint.
    """

    def __init__(self, make: Callable[[], System], config: Config, folder: Path, watchers: SinkList) -> None:
        """``make`` builds the system, and builds it again after a loss; ``watchers`` receive every event."""
        self._make, self._config, self._folder, self._watchers = make, config, folder, watchers
        self._began_steps: int | None = None  # first step of the newest attempt
        self._losses = 0  # consecutive attempts that started from the same checkpoint and failed

    def train(self, *, resume: bool, runtime: str) -> TrainResult:
        continues = check_run_dir(self._folder, self._config, resume=resume)
        if not continues:
            check_new(self._config)
        # Build the system before the folder. An environment that cannot be trained on must not leave one behind.
        try:
            system: System | None = self._make()
        except ProcessLostError as error:
            raise StallError("a process was lost before the run started", str(error)) from None
        except EnvironmentFaultError as error:
            raise UserError(f"{error}. It fails before the run starts: fix the environment.") from error
        try:
            names = make_index_space(self._config.index_space).names
            with (
                self._open_folder(continues, runtime) as guard,
                closing(RunLog(self._folder, names)) as log,
                stop_on_signal() as stop,
            ):
                if not continues:
                    log.rewind({}, {})  # a start that failed may have left a header
                self._watchers.add(log)
                while True:
                    try:
                        system = system or self._make()
                        return self._attempt(system, log, guard, stop, continues)
                    except ProcessLostError as error:
                        self._note_loss(str(error))
                    if system is not None:
                        system.close()
                    system, continues = None, True
        finally:
            if system is not None:
                system.close()

    @contextmanager
    def _open_folder(self, continues: bool, runtime: str) -> Iterator[FolderGuard]:
        """Lock the run folder, after making it if it is new."""
        if not continues:
            make_run_dir(self._folder)
        lock = RunLock(self._folder, runtime)
        try:
            if not continues:
                seal = bool(own_modules(self._config))
                write_config(self._folder, config_to_json(self._config).encode(), seal=seal)
            guard = FolderGuard(self._folder, lock, runtime)
        except BaseException:
            lock.close()
            raise
        with closing(guard):
            yield guard

    def _attempt(self, system: System, log: RunLog, guard: FolderGuard, stop: Stop, continues: bool) -> TrainResult:
        """Train until the end, a stop, or the loss of a process."""
        config, folder, watchers = self._config, self._folder, self._watchers
        store = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, watchers.notice)
        kept = config.run.states_per_stage
        states = StateRecorder(folder, kept, config.steps) if kept else None
        run = Run(system, RunFiles(guard, log, store, watchers.notice), watchers, states)
        resumed = run.resume() if continues else False
        if self._began_steps is None:
            begin = format_start(config, folder, run.steps, resumed)
            text = "\n".join([begin, *system.spec.notes, system.summary()])
            watchers.event({"kind": "start", "steps": run.steps, "text": text})
        if run.steps != self._began_steps:
            self._began_steps, self._losses = run.steps, 0
        evaluation = run.train(stop)
        stopped_by = None if run.finished else getattr(stop, "signal", None)
        return TrainResult(
            folder, run.steps, run.frames, run.updates, run.seconds, run.finished, evaluation, stopped_by
        )

    def _note_loss(self, why: str) -> None:
        self._watchers.notice(
            f"Restarting from the newest checkpoint because a process of this run was lost: {why[:200]}"
        )
        self._losses += 1
        if self._losses == MAX_LOSSES_PER_CHECKPOINT:
            raise StallError(f"a process was lost {self._losses} times since the same checkpoint", why) from None


def format_start(config: Config, folder: Path, steps: int, resumed: bool) -> str:
    verb = f"resuming at {steps:,} of" if resumed else "training for"
    return (
        f"GDI: {config.preset} at scale '{config.scale}' on {config.env.id}, {verb} {config.steps:,} steps, "
        f"seed {config.seed}, run folder {folder}"
    )
