"""Events: what a run tells the outside. Everything that watches a run only reads these."""

from __future__ import annotations

from typing import Any, Protocol

from gdi.types import EpisodeEnd, State

Event = dict[str, Any]


class Sink(Protocol):
    """Something that watches a run."""

    def event(self, event: Event) -> None:
        """``event["kind"]`` is start, train, evaluation, checkpoint, notice or progress; the rest depends on it."""
        ...

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        """One finished training episode."""
        ...


class Log(Sink, Protocol):
    """A sink that a resumed run continues: it can say how far it is, and go back to there."""

    def position(self) -> State: ...

    def rewind(self, position: State) -> None: ...


class Notices:
    """Sends events to several sinks."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = list(sinks)

    def add(self, sink: Sink) -> None:
        self._sinks.append(sink)

    def notice(self, text: str) -> None:
        self.event({"kind": "notice", "text": text})

    def event(self, event: Event) -> None:
        for sink in self._sinks:
            sink.event(event)

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        for sink in self._sinks:
            sink.episode(steps, episode)
