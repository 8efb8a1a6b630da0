"""Algorithm 1, Generalized Data Distribution Iteration (alg:GDI). Every runtime runs through this page.

Initialize Λ, Θ, P_Λ^(0), θ^(0)
for t = 0, 1, 2, ...
    Sample {X^(t)_{ρ0,λ}} with λ ~ P_Λ^(t)             sample
    θ^(t+1)   = T(θ^(t),   {X^(t)_{ρ0,λ}})              improve
    P_Λ^(t+1) = E(P_Λ^(t), {X^(t)_{ρ0,λ}})              reweight

The three steps are functions of the parts they need, and are called where those parts live; ``Operators`` is what a
runtime offers of them, and ``iterate`` is the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from gdi.clock import Clock
from gdi.controller import Controller
from gdi.cores import keep_torch_threads
from gdi.errors import Diverged
from gdi.types import EpisodeEnd, Index, Metrics, Sequence, gather_columns

if TYPE_CHECKING:  # a process that holds only the controller calls its steps of this page, and needs no torch
    from torch import Tensor

    from gdi.acting.actor import Actor, Propose
    from gdi.acting.collector import Collector
    from gdi.acting.parameters import ParameterServer
    from gdi.learner import Learner

Push: TypeAlias = "Callable[[dict[str, Tensor], int], None]"
Window = TypeVar("Window")


@dataclass(frozen=True)
class Sampled(Generic[Window]):
    """{X_{ρ0,λ}}: one window of every environment of an actor, or where it is kept."""

    window: Window
    transitions: int
    episodes: list[EpisodeEnd]


@dataclass(frozen=True)
class Iteration:
    """What happened in one t."""

    episodes: list[EpisodeEnd] = field(default_factory=list)
    updates: list[Metrics] = field(default_factory=list)


def sample(actor: Actor, propose: Propose, max_transitions: int) -> Sampled[Sequence]:
    """Sample {X_{ρ0,λ}}, λ ~ P_Λ: one window of every environment."""
    window, episodes = actor.collect(propose, max_transitions)
    first = len(window.valid) - actor.trained_steps
    return Sampled(window, int(window.valid[first:].sum()), episodes)


def improve(
    batches: Iterable[Sequence], learner: Learner, push: Push, push_every_updates: int, clock: Clock
) -> Iterator[Metrics]:
    """θ ← T(θ, X): train every batch that is due, pushing θ and its version now and then."""
    for batch in batches:
        with clock.measure("learning"):
            metrics = learner.update(batch)
            # The paper counts from 0 and so pushes after its first update, the (N + 1)th, and so on.
            if (learner.updates - 1) % push_every_updates == 0:
                push(learner.parameters(), learner.updates)
        yield metrics


def reweight(controllers: list[Controller], episodes: list[EpisodeEnd]) -> None:
    """P_Λ ← E(P_Λ, X): the controllers learn from the returns of the episodes that ended."""
    for episode in episodes:
        controller_of(controllers, episode.env).observe(episode.index, episode.episode_return)


def controller_of(controllers: list[Controller], env: int) -> Controller:
    """There is one controller for all environments, or one for each."""
    return controllers[env % len(controllers)]


def proposals(controllers: list[Controller], envs: list[int]) -> list[Index]:
    """λ ~ P_Λ for the next episode of each of these environments."""
    return [controller_of(controllers, env).propose() for env in envs]


def until_diverged(updates: Iterable[Metrics]) -> tuple[list[Metrics], Diverged | None]:
    """All metrics, or those before the learner diverged, and the error."""
    done: list[Metrics] = []
    try:
        for metrics in updates:
            done.append(metrics)  # one by one: what came before an error is kept
    except Diverged as error:
        return done, error
    return done, None


class Operators(Protocol[Window]):
    """The steps of Algorithm 1 over parts that live in this process, or in others."""

    @property
    def steps(self) -> int:
        """Transitions sampled so far."""
        ...

    def sample(self, max_transitions: int) -> Sampled[Window] | None:
        """One window, or None where actors are elsewhere and none has come for a while."""
        ...

    def collect(self, window: Window) -> None:
        """Give the window to the collector."""
        ...

    def improve(self, *, last: bool = False) -> tuple[list[Metrics], Diverged | None]:
        """Train what is due; ``last``: no window will come any more, so everything is."""
        ...

    def reweight(self, episodes: list[EpisodeEnd]) -> None: ...


def iterate(parts: Operators[Window], total_steps: int) -> Iterator[Iteration]:
    """Algorithm 1, until exactly ``total_steps`` transitions are sampled and each is trained as often as asked.

    It may be abandoned between two iterations, and continued by another call; so that it can be while no window comes,
    it then yields empty ones. Should the learner diverge, what the iteration sampled is still reweighted and yielded
    before the error is raised.
    """
    while parts.steps < total_steps:
        sampled = parts.sample(total_steps - parts.steps)
        if sampled is None:
            yield Iteration()
            continue
        parts.collect(sampled.window)
        updates, diverged = parts.improve()
        parts.reweight(sampled.episodes)
        yield from _ended(sampled.episodes, updates, diverged)
    yield from _ended([], *parts.improve(last=True))


def _ended(episodes: list[EpisodeEnd], updates: list[Metrics], diverged: Diverged | None) -> Iterator[Iteration]:
    yield Iteration(episodes, updates)
    if diverged is not None:
        raise diverged


@dataclass
class Parts:
    """The parts of a run that lives in one process, and Algorithm 1's steps over them."""

    actor: Actor
    collector: Collector[Sequence]
    learner: Learner
    parameters: ParameterServer
    controllers: list[Controller]
    clock: Clock
    push_every_updates: int
    actor_threads: int = 1  # torch threads of the actor, where it has a thread of its own
    steps: int = 0
    episodes: int = 0

    def sample(self, max_transitions: int) -> Sampled[Sequence]:
        sampled = sample(self.actor, lambda envs: proposals(self.controllers, envs), max_transitions)
        self.steps += sampled.transitions
        self.episodes += len(sampled.episodes)
        return sampled

    def collect(self, window: Sequence) -> None:
        self.collector.add(window)

    def improve(self, *, last: bool = False, push: Push | None = None) -> tuple[list[Metrics], Diverged | None]:
        if last:
            self.collector.finish()
        batches = self._batches(last)
        push = push or self.parameters.push
        return until_diverged(improve(batches, self.learner, push, self.push_every_updates, self.clock))

    def _batches(self, last: bool) -> Iterator[Sequence]:
        while True:
            with self.clock.measure("data"):
                uses = self.collector.next_uses(allow_partial=last)
                if uses is None:
                    return
                batch = gather_columns(uses)
            yield batch

    def reweight(self, episodes: list[EpisodeEnd]) -> None:
        reweight(self.controllers, episodes)


def train_left_over(parts: Parts) -> Iterator[Iteration]:
    """Train what is still due, as it is in a run that diverged and is resumed: there is no room for a window before."""
    updates, diverged = parts.improve()
    if updates or diverged:
        yield from _ended([], updates, diverged)


def iterate_overlapped(parts: Parts, total_steps: int) -> Iterator[Iteration]:
    """As ``iterate``, but the next window is sampled while the batches that are due are trained.

    The data is one window older; θ reaches the actor only between two windows, so the lag is fixed and a run repeats
    for a seed.
    """
    with ThreadPoolExecutor(1, "actor", keep_torch_threads, (parts.actor_threads,)) as thread:
        while parts.steps < total_steps:
            newest: dict[int, dict[str, Tensor]] = {}  # at most one θ, by version

            def hold(params: dict[str, Tensor], version: int, newest: dict[int, dict[str, Tensor]] = newest) -> None:
                newest.clear()
                newest[version] = params

            sampling = thread.submit(parts.sample, total_steps - parts.steps)
            updates, diverged = parts.improve(push=hold)
            sampled = sampling.result()
            if diverged is None:
                parts.collect(sampled.window)
            else:  # batches are still due, and no room for more: a run that is resumed samples these steps again
                parts.steps -= sampled.transitions
            parts.reweight(sampled.episodes)
            for version, params in newest.items():
                parts.parameters.push(params, version)
            yield from _ended(sampled.episodes, updates, diverged)
    yield from _ended([], *parts.improve(last=True))
