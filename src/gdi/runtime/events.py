"""Events, which are all that a run reports. Observers of a run only read these."""

from __future__ import annotations

from typing import Any, Protocol

from gdi.types import EpisodeEnd, State

Event = dict[str, Any]


class Sink(Protocol):
    """An observer of a run."""

    def event(self, event: Event) -> None:
        """Handle an event.

        ``event["kind"]`` is start, train, evaluation, checkpoint, notice, fault or progress. The other keys depend on
        the kind.
        """
        ...

    def episode(self, steps: int, episode: EpisodeEnd) -> None:
        """Handle a finished training episode."""
        ...


class ResumableSink(Sink, Protocol):
    """A sink that a resumed run continues: it reports its position and can return to it."""

    def position(self) -> State: ...

    def rewind(self, position: State) -> None: ...


class SinkList:
    """A sink that sends events to several sinks."""

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
