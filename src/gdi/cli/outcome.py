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
from gdi.envs.minatar import IDS as MINATAR_IDS
from gdi.envs.names import is_atari
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
    if result.evaluation.cut_episodes:
        print(f"  {cut_text(result.evaluation, config)}")
    _print_scores(result.evaluation)
    _print_next(result.run_dir, config.env.id)


def cut_text(evaluation: Evaluation, config: Config) -> str:
    """Return how many episodes were cut, and where."""
    from gdi.evaluation.evaluator import MAX_EPISODE_STEPS

    limit = max(MAX_EPISODE_STEPS, config.env.max_episode_steps)
    which = f"{evaluation.cut_episodes} of {evaluation.episodes} episodes"
    were = "was" if evaluation.cut_episodes == 1 else "were"
    return f"{which} {were} cut at {limit:,} steps, because they did not end (--env.max-episode-steps)"


def _evaluation_text(e: Evaluation) -> str:
    from gdi.report.console import format_score

    return (
        f"Evaluation over {e.episodes} episodes: "
        f"mean {e.mean:.2f}, median {e.median:.2f}, min {format_score(e.min)}, max {format_score(e.max)}."
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


def _print_next(folder: Path, env_id: str) -> None:
    # After `make demo` gdi is only in .venv/bin.
    own = "python -m gdi" if sys.argv[0].endswith(".py") else sys.argv[0]
    gdi = "gdi" if shutil.which("gdi") else own
    print(f"The run is saved in {folder}. Next:")
    print(f"  {gdi} evaluate {folder} --episodes 100")
    print(f"  {gdi} report {folder}")
    if can_be_drawn(env_id):
        print(f"  {gdi} play {folder}")
    print(f"  tensorboard --logdir {folder}/tensorboard    (pip install tensorboard)")


def can_be_drawn(env_id: str) -> bool:
    """Return whether ``gdi play`` certainly has pictures of an environment; none is made to find out."""
    if is_atari(env_id) or env_id in MINATAR_IDS:
        return True
    from gymnasium.envs.registration import load_env_creator, spec

    try:
        entry = spec(env_id).entry_point
        creator = load_env_creator(entry) if isinstance(entry, str) else entry
    except Exception:  # an environment in a file, or a user's module that fails
        return False
    return "rgb_array" in ((getattr(creator, "metadata", None) or {}).get("render_modes") or ())


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
