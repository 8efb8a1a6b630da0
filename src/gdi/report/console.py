"""The live console: one screen that shows how training goes. It only reads events."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from gdi.config import Config, FixedConfig, ScheduleConfig, UniformConfig
from gdi.index_space import IndexSpace, make_index_space
from gdi.report.console_strips import ControlView
from gdi.runtime.events import Event
from gdi.types import EpisodeEnd, Index

RECENT_EPISODES = 100
PLAIN_EVERY_SECONDS = 10.0
WITHOUT_E = (FixedConfig, UniformConfig)


class NullConsole:
    """A console that shows nothing, for the Python API."""

    def event(self, event: Event) -> None:
        pass

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        pass

    def close(self) -> None:
        pass


class LiveConsole:
    """A progress bar with ETA and a table of the newest numbers.

    If the output is not a terminal, plain lines are printed instead.
    """

    def __init__(self, config: Config, stream: TextIO | None = None, folder: Path | None = None) -> None:
        """``folder`` is the run folder, whose log a resumed run continues."""
        self._config = config
        self._folder = folder
        self._space = make_index_space(config.index_space)
        self._console = Console(file=stream or sys.stderr, highlight=False)
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            console=self._console,
        )
        self._task: TaskID = self._progress.add_task(config.env.id, total=config.steps)
        self._returns: list[float] = []
        self._indices: list[Index] = []  # of the same episodes
        self._train: Event = {}
        self._control = ControlView(self._space)
        self._evaluation: Event = {}
        self._speed = SpeedMeter()
        self._last_plain = time.monotonic()
        self._live: Live | None = None

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        self._returns = [*self._returns[-RECENT_EPISODES + 1 :], episode.episode_return]
        self._indices = [*self._indices[-RECENT_EPISODES + 1 :], episode.index]
        self._control.episode(episode)

    def event(self, event: Event) -> None:
        kind = event["kind"]
        if kind == "start":
            self._console.print(event["text"], markup=False, soft_wrap=True)
            # Start the display only now, so that earlier errors leave the screen alone.
            if self._console.is_terminal:
                self._live = Live(console=self._console, get_renderable=self._screen, refresh_per_second=4)
                self._live.start()
            self._progress.update(self._task, completed=event["steps"])
            self._speed = SpeedMeter(event["steps"])
            if event["steps"] and self._folder is not None:
                self._control.continue_from(self._folder)
        elif kind == "notice":
            self._console.print(event["text"], style="yellow", markup=False, soft_wrap=True)
        elif kind == "progress":
            self._progress.update(self._task, completed=event["steps"])
            self._speed.update(event["steps"])
            if self._live is None and time.monotonic() - self._last_plain > PLAIN_EVERY_SECONDS:
                self._plain(event)
        elif kind == "train":
            self._train = event
            self._control.line(event)
        elif kind == "evaluation":
            self._evaluation = event
            if self._live is None:
                line = f"{event['steps']:>12,} steps  evaluation  {_evaluation_line(event)}"
                self._console.print(line, soft_wrap=True)

    def _plain(self, event: Event) -> None:
        self._last_plain = time.monotonic()
        share = event["steps"] / self._config.steps
        self._console.print(
            f"{event['steps']:>12,} steps  {share:4.0%}  {self._speed.per_second:,.0f} steps/s  "
            f"return {self._recent_return()}  {self._exploration()[1]}",
            soft_wrap=True,
        )

    def _recent_return(self) -> str:
        if not self._returns:
            return "-"
        return f"{sum(self._returns) / len(self._returns):.2f}"

    def _exploration(self) -> tuple[str, str]:
        """Return what is known about λ, with its name: the best values, or the mean of the newest episodes."""
        if self._train and self._indices and logs_no_belief(self._train, self._config, self._space):
            mean = tuple(sum(values) / len(values) for values in zip(*self._indices, strict=True))
            return "exploration", f"mean λ of the last {len(self._indices)} episodes: {self._space.text(mean)}"
        return "best λ so far", format_best_index(self._train, self._config, self._space)

    def _screen(self) -> Any:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", justify="right")
        table.add_column()
        speed = self._speed.per_second
        frames_per_step = self._frames_per_step()
        table.add_row("speed", f"{speed:,.0f} steps/s   {speed * frames_per_step:,.0f} frames/s")
        table.add_row("training return", f"{self._recent_return()}  (mean of the last {len(self._returns)} episodes)")
        if self._evaluation:
            table.add_row("evaluation", f"{_evaluation_line(self._evaluation)}  at {self._evaluation['steps']:,} steps")
        if self._train:
            train = self._train
            table.add_row(*self._exploration())
            for title, prefix in (("losses", "loss/"), ("policy", "policy/")):
                shown = {name.removeprefix(prefix): value for name, value in train.items() if name.startswith(prefix)}
                if shown:
                    table.add_row(title, "   ".join(f"{name} {value:.4g}" for name, value in shown.items()))
            if "actor/parameter_lag_updates" in train:
                table.add_row("parameter lag", f"{train['actor/parameter_lag_updates']:.1f} updates")
            shares = sorted(train["clock"]["shares"].items(), key=lambda item: -item[1])
            table.add_row("time goes to", "   ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.01))
        return Group(self._progress, *self._control.rows(self._console.width), table)

    def _frames_per_step(self) -> float:
        event = self._train or self._evaluation
        return event["frames"] / event["steps"] if event.get("steps") else 1.0

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


class SpeedMeter:
    """Training speed in steps per second over the last few seconds."""

    def __init__(self, steps: int = 0) -> None:
        self._marks = [(time.monotonic(), steps)]

    def update(self, steps: int) -> None:
        now = time.monotonic()
        recent = [mark for mark in self._marks if now - mark[0] < 10.0] or self._marks[-1:]
        self._marks = [*recent[-200:], (now, steps)]

    @property
    def per_second(self) -> float:
        (begin, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / (end - begin) if end > begin else 0.0


def _evaluation_line(event: Event) -> str:
    low, high = format_score(event["min"]), format_score(event["max"])
    line = f"mean {event['mean']:.2f}  median {event['median']:.2f}  [{low}, {high}]"
    if event.get("cut_episodes"):
        line += f"  {event['cut_episodes']} of {event['episodes']} episodes cut"
    return line if event.get("hns") is None else f"{line}  {format_normalized(event)}"


def format_score(value: float) -> str:
    """Format a return without an exponent: whole numbers in full, others with two decimals or four digits."""
    if not math.isfinite(value):
        return str(value)
    if value == round(value):
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 100 else f"{value:.4g}"


def format_normalized(scores: Mapping[str, Any]) -> str:
    """Format an Atari score's fractions as percentages: ``HNS 101.2%  HWRNS 3.5%  SABER 3.5%``."""
    return "  ".join(f"{name.upper()} {scores[name]:.1%}" for name in ("hns", "hwrns", "saber"))


def logs_no_belief(train: Event, config: Config, space: IndexSpace) -> bool:
    """Return whether the controller learns, and yet a log line has no belief of it, as with a user's own class."""
    learns = not isinstance(config.controller, (*WITHOUT_E, ScheduleConfig))
    return learns and any(f"controller/{axis.name}/best_block" not in train for axis in space.axes)


def format_best_index(train: Event, config: Config, space: IndexSpace) -> str:
    """Format the center of each axis's best block, or its current value: ``1/τ1 3.5  1/τ2 12.5  ε 0.85``."""
    values = space.by_name(space.base)
    if isinstance(config.controller, ScheduleConfig):
        values[config.controller.component] = config.controller.value_at(train.get("steps", 0))
    for axis in space.axes:
        block = train.get(f"controller/{axis.name}/best_block")
        if block is None:
            state = "not learned" if isinstance(config.controller, WITHOUT_E) else "still unknown"
            return f"exploration setting: {state}"
        values[axis.name] = axis.to_value(axis.low + (block + 0.5) * axis.block_width)
    return space.text(tuple(values.values()))
