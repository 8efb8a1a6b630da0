"""One session of a run: it begins or resumes, survives lost parts, and stops when a signal asks it to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gdi.config import Config
from gdi.evaluation import Evaluation, report_of
from gdi.index_space import make_index_space
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.events import Notices
from gdi.runtime.faults import PartLost, Stalled
from gdi.runtime.folder import CHECKPOINTS, prepare_run_dir
from gdi.runtime.lock import run_lock
from gdi.runtime.run import Run, System
from gdi.runtime.runlog import RunLog

# A part may be lost this often before there is another checkpoint.
FRUITLESS_ATTEMPTS = 3


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to."""

    run_dir: Path
    steps: int
    frames: int
    updates: int
    seconds: float
    finished: bool  # false: stopped by a signal, and can be resumed
    evaluation: Evaluation | None

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


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Within it, SIGINT and SIGTERM ask the run to save and stop; a second one stops at once, as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # signals belong to the main thread; a caller's thread is stopped by its caller
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: Any) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Session:
    """Trains a system in a run folder. When a part is lost, a new system goes on from the newest checkpoint."""

    def __init__(self, make: Callable[[], System], config: Config, folder: Path, watchers: Notices) -> None:
        """``make`` builds the system, again after a loss; ``watchers`` see every event."""
        self._make, self._config, self._folder, self._watchers = make, config, folder, watchers
        self._began_steps: int | None = None  # where the newest attempt began
        self._losses = 0  # attempts in a row that ended at the same checkpoint

    def train(self, *, resume: bool, runtime: str) -> TrainResult:
        # Build first: an environment that cannot be trained on must leave no folder behind.
        try:
            system: System | None = self._make()
        except PartLost as error:
            raise Stalled("a part was lost before the run began", str(error)) from None
        try:
            continues = prepare_run_dir(self._folder, self._config, resume=resume)
            names = make_index_space(self._config.index_space).names
            with (
                run_lock(self._folder, runtime),
                closing(RunLog(self._folder, names)) as log,
                stop_on_signal() as stop,
            ):
                self._watchers.add(log)
                while True:
                    try:
                        system = system or self._make()
                        return self._attempt(system, log, stop, continues)
                    except PartLost as error:
                        self._note_loss(str(error))
                    if system is not None:
                        system.close()
                    system, continues = None, True
        finally:
            if system is not None:
                system.close()

    def _attempt(self, system: System, log: RunLog, stop: Callable[[], bool], continues: bool) -> TrainResult:
        """Train until the end, a stop, or the loss of a part."""
        config, folder, watchers = self._config, self._folder, self._watchers
        store = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, watchers.notice)
        run = Run(system, log, watchers, store)
        resumed = run.resume() if continues else False
        if self._began_steps is None:
            text = f"{start_text(config, folder, run.steps, resumed)}\n{system.text()}"
            watchers.event({"kind": "start", "steps": run.steps, "text": text})
        if run.steps != self._began_steps:
            self._began_steps, self._losses = run.steps, 0
        evaluation = run.train(stop)
        return TrainResult(folder, run.steps, run.frames, run.updates, run.seconds, run.finished, evaluation)

    def _note_loss(self, why: str) -> None:
        self._watchers.notice(f"Going back to the newest checkpoint, for a part of the run is lost: {why[:200]}")
        self._losses += 1
        if self._losses == FRUITLESS_ATTEMPTS:
            raise Stalled(f"a part was lost {self._losses} times since one checkpoint", why) from None


def start_text(config: Config, folder: Path, steps: int, resumed: bool) -> str:
    verb = f"resuming at {steps:,} of" if resumed else "training for"
    return (
        f"GDI: {config.preset} at scale '{config.scale}' on {config.env.id}, {verb} {config.steps:,} steps, "
        f"seed {config.seed}, run folder {folder}"
    )
