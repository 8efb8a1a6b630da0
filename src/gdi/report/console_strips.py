"""What E did so far in a run of this process, as strips for its console. It only reads events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.table import Table

from gdi.index_space import IndexSpace
from gdi.report.log import Line
from gdi.report.runs import read_run
from gdi.report.strips import Strip, played_means, strips_of, strips_table
from gdi.runtime.events import Event
from gdi.types import Array, EpisodeEnd

MOST_LINES = 400  # more than a terminal has columns


class ControlView:
    """The log lines of a run with the mean λ before each, thinned so that they stay few."""

    def __init__(self, space: IndexSpace) -> None:
        self._space = space
        self._lines: list[Line] = []
        self._means: list[Array] = []  # of λ, one per line, [components]
        self._sum, self._count = np.zeros(len(space.names)), 0
        self._strips: list[Strip] = []

    def continue_from(self, folder: Path) -> None:
        """Start with the lines that a resumed run already has."""
        run = read_run(folder)
        played = played_means(run.train, run.episodes)
        if run.train and set(played) == set(self._space.names):
            self._lines = list(run.train)
            self._means = list(np.stack([played[name] for name in self._space.names], -1))
            self._update()

    def episode(self, episode: EpisodeEnd) -> None:
        self._sum += episode.index
        self._count += 1

    def line(self, event: Event) -> None:
        """Take a log line."""
        self._lines.append(event)
        self._means.append(self._sum / self._count if self._count else np.full(len(self._sum), np.nan))
        self._sum, self._count = np.zeros(len(self._sum)), 0
        self._update()

    def _update(self) -> None:
        while len(self._lines) > MOST_LINES:
            odd = len(self._lines) % 2 == 0  # so that the newest line stays
            self._lines, self._means = self._lines[odd::2], self._means[odd::2]
        labels = dict(zip(self._space.names, self._space.labels, strict=True))
        played = dict(zip(self._space.names, np.stack(self._means, -1), strict=True))
        self._strips = strips_of(self._space.axes, labels, self._lines, played)

    def rows(self, width: int) -> list[Table]:
        """Return the strips as one table, or nothing while there are none."""
        return [strips_table(self._strips, width)] if self._strips else []
