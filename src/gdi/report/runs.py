"""The one reader of run folders, for the report, the live page and the terminal. It needs no torch and only reads."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gdi.errors import UserError
from gdi.report.episodes import Episodes, read_episodes
from gdi.report.log import AxisBelief, Line, Log, axis_belief, read_log
from gdi.report.settings import Settings, read_settings
from gdi.runtime.lock import lock_holder
from gdi.runtime.run_log import EPISODES, METRICS, NOTICES

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
# A checkpoint that is still being written has another name.
SAVED = re.compile(r"step-(\d{12})-update-\d{9}(-\d{3,})?")


@dataclass(frozen=True)
class State:
    """The state of a run, as one word for programs and as text for people."""

    word: Literal["running", "finished", "stopped", "empty", "recorded"]
    text: str


@dataclass(frozen=True)
class Run:
    """One training run, as its files tell it."""

    folder: Path
    name: str
    settings: Settings
    state: State
    train: tuple[Line, ...] = ()
    evaluations: tuple[Line, ...] = ()
    episodes: Episodes = field(default_factory=Episodes)
    notices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # one sentence about each thing that could not be read
    agent: str = ""  # the name in a benchmark's records; empty for a run folder
    saved_steps: int = 0  # of the newest checkpoint, which may be ahead of the log

    @property
    def env(self) -> str:
        """Return the environment's id, which an evaluation line has as well."""
        logged = (line.get("env") for line in self.evaluations)
        return self.settings.env or next((env for env in logged if isinstance(env, str)), "")

    @property
    def steps(self) -> int:
        """Return the steps that the run has reached, by its log or by its newest checkpoint."""
        return reached_steps((self.train, self.evaluations), self.saved_steps)

    def belief(self, axis: str) -> AxisBelief | None:
        """Return the controller's belief about a searched axis over the run, or None if it logged none."""
        blocks = {found.name: found.num_blocks for found in self.settings.axes}
        return axis_belief(self.train, axis, blocks[axis]) if axis in blocks else None


def read_run(folder: Path) -> Run:
    """Return the run in a folder. A file that is missing or damaged becomes a note; the rest is read."""
    check_run_folder(folder)
    settings = read_settings(folder / CONFIG)
    log = read_log(folder / METRICS)
    episodes = read_episodes(folder / EPISODES, settings.steps or math.inf)
    saved = saved_steps(folder / CHECKPOINTS)
    return Run(
        folder=folder,
        name=folder.resolve().name,
        settings=settings,
        state=state_of(settings, log, lock_holder(folder), saved),
        train=log.train,
        evaluations=log.evaluations,
        episodes=episodes,
        notices=_notices(folder / NOTICES),
        notes=tuple(_notes(settings, log, episodes)),
        saved_steps=saved,
    )


def check_run_folder(folder: Path) -> None:
    """Raise UserError if the folder holds no run."""
    if not folder.exists():
        raise UserError(f"run folder {folder} does not exist.")
    if not is_run_folder(folder):
        raise UserError(f"{folder} is not a run folder: it has no {CONFIG} and no {METRICS}.")


def is_run_folder(folder: Path) -> bool:
    return (folder / METRICS).is_file() or ((folder / CONFIG).is_file() and (folder / CHECKPOINTS).is_dir())


def find_run_folders(folder: Path) -> list[Path]:
    """Return the run folders in a folder and below, in the order of their names; none lies inside another."""
    found = []
    for root, folders, _ in os.walk(folder):
        if is_run_folder(Path(root)):
            found.append(Path(root))
            folders.clear()
        folders.sort()
    return found


def saved_steps(folder: Path) -> int:
    """Return the steps of the newest checkpoint by the names in the folder of checkpoints, or 0 if there is none."""
    try:
        names = [SAVED.fullmatch(path.name) for path in folder.iterdir()]
    except OSError:
        return 0
    return max((int(name[1]) for name in names if name), default=0)


def reached_steps(logs: Iterable[Sequence[Line]], saved: int) -> int:
    """Return the largest number of steps: of the last line of each log, or of a checkpoint."""
    return max(saved, *(int(lines[-1]["steps"]) for lines in logs if lines), 0)


def state_of(settings: Settings, log: Log, holder: str | None, saved: int = 0) -> State:
    """Return the state of a run from its log, the steps of its newest checkpoint, and the holder of its lock."""
    steps = reached_steps((log.train, log.evaluations), saved)
    reached = f"{steps:,} of {settings.steps:,} steps" if settings.steps else f"{steps:,} steps"
    if holder is not None:
        return State("running", f"running, {reached}")
    if not (log.train or log.evaluations or saved):
        return State("empty", "no line was logged yet")
    # The last evaluation comes after the last step, and ends the run.
    if settings.steps and log.evaluations and log.evaluations[-1]["steps"] >= settings.steps:
        return State("finished", f"finished, {reached}")
    return State("stopped", f"stopped at {reached}; gdi train --resume continues it")


def _notices(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def _notes(settings: Settings, log: Log, episodes: Episodes) -> Iterable[str]:
    if settings.problem:
        yield f"{settings.problem}, so the page cannot name its settings."
    for name, count in ((METRICS, log.left_out), (EPISODES, episodes.left_out)):
        if count:
            yield f"{count:,} damaged line{'s' if count > 1 else ''} of {name} left out."
