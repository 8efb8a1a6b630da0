"""The last lines of ``gdi train``: the result, where it is saved, and the commands that come next."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from gdi.cli.settings import PLACEMENT, option_name
from gdi.config import Config
from gdi.types import EpisodeEnd

if TYPE_CHECKING:
    from gdi.api import ClosableSink, TrainResult
    from gdi.cli.train import TrainArguments
    from gdi.evaluation import Evaluation
    from gdi.runtime.events import Event


class PatientConsole:
    """Console that does not announce a run that is already finished.

    A run that has all its steps may still lack its evaluation. Its start is therefore shown with the next event.
    """

    def __init__(self, console: ClosableSink, steps: int) -> None:
        """``steps`` is the number of steps of the whole run."""
        self._console, self._steps = console, steps
        self._start: Event | None = None

    @property
    def was_finished(self) -> bool:
        """Return True if the run was finished before this session."""
        return self._start is not None

    def event(self, event: Event) -> None:
        if event["kind"] == "start" and event["steps"] >= self._steps:
            self._start = event
            return
        if self._start is not None and event["kind"] != "notice":
            self._console.event(self._start)
            self._start = None
        self._console.event(event)

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        self._console.episode(steps, episode)

    def close(self) -> None:
        self._console.close()


def print_outcome(result: TrainResult, config: Config, again: str, *, was_finished: bool) -> None:
    """Print the result of a session for a person. ``again`` is the command that continues the run."""
    if not result.finished:
        if result.steps < config.steps:
            print(f"Stopped at {result.steps:,} of {config.steps:,} steps. Everything is saved.")
        else:
            print(f"Stopped before the final evaluation, after all {config.steps:,} steps. Everything is saved.")
        print(f"  continue   {again}")
        return
    assert result.evaluation is not None
    if was_finished:
        print(f"This run is already finished: {result.steps:,} steps. {_evaluation_text(result.evaluation)}")
        print("A run keeps its --steps. For more steps, start a new run in another --run-dir.")
    else:
        seconds = f"{result.steps:,} steps in {result.seconds:,.0f} s"
        print(f"Done: {seconds}. {_evaluation_text(result.evaluation)}")
    _print_scores(result.evaluation)
    _print_next(result.run_dir)


def _evaluation_text(e: Evaluation) -> str:
    return (
        f"Evaluation over {e.episodes} episodes: "
        f"mean {e.mean:.2f}, median {e.median:.2f}, min {e.min:.4g}, max {e.max:.4g}."
    )


def _print_scores(evaluation: Evaluation) -> None:
    from gdi.evaluation import WITHHELD, normalized_scores
    from gdi.report.console import format_normalized

    scores = normalized_scores(evaluation)
    if scores["hns"] is not None:
        print(f"  {format_normalized(scores)}   protocol {evaluation.label}")
    elif evaluation.changes:
        print(f"  protocol {evaluation.label}")
        print(f"  {WITHHELD}")


def _print_next(folder: Path) -> None:
    # After `make demo` gdi is only in .venv/bin.
    own = "python -m gdi" if sys.argv[0].endswith(".py") else sys.argv[0]
    gdi = "gdi" if shutil.which("gdi") else own
    print(f"The run is saved in {folder}. Next:")
    print(f"  {gdi} evaluate {folder} --episodes 100")
    print(f"  tensorboard --logdir {folder}/tensorboard    (pip install tensorboard)")


def resume_command(folder: Path, choice: TrainArguments) -> str:
    """Return the command that continues the run.

    It repeats where the run was placed, which is not part of the run's config.
    """
    words = ["gdi train --run-dir", shlex.quote(str(folder)), "--resume"]
    if choice.runtime == "ray":
        words.append("--runtime ray")
        if choice.ray_address:
            words.append(f"--ray-address {choice.ray_address}")
        for field in fields(choice.placement):
            value, option = getattr(choice.placement, field.name), option_name("placement", field.name)
            if value != getattr(PLACEMENT, field.name):
                words.append(option if value is True else f"{option} {value}")
    return " ".join(words)
