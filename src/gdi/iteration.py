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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gdi.clock import Clock
from gdi.controller import Controller
from gdi.errors import Diverged
from gdi.types import Batch, EpisodeEnd, Metrics, Window

if TYPE_CHECKING:  # a process that holds only the controller calls its step of this page, and needs no torch
    from torch import Tensor

    from gdi.acting.actor import Actor, Propose
    from gdi.learner import Learner


@dataclass(frozen=True)
class Sampled:
    """What is known of {X_{ρ0,λ}} without opening it."""

    transitions: int
    episodes: list[EpisodeEnd]


@dataclass(frozen=True)
class Published:
    """A copy of θ for the actors; its version is the number of updates behind it."""

    params: dict[str, Tensor]
    version: int


@dataclass(frozen=True)
class Improved:
    """What came of some batches: a line of metrics each, the newest θ to publish, and the error that ended them."""

    updates: list[Metrics] = field(default_factory=list)
    published: Published | None = None
    diverged: Diverged | None = None

    @property
    def batches(self) -> int:
        """Batches that are done with, the one that raised the error included."""
        return len(self.updates) + (self.diverged is not None)


@dataclass(frozen=True)
class Iteration:
    """What happened in one t."""

    episodes: list[EpisodeEnd] = field(default_factory=list)
    updates: list[Metrics] = field(default_factory=list)


def sample(actor: Actor, propose: Propose, max_transitions: int) -> tuple[Window, Sampled]:
    """Sample {X_{ρ0,λ}}, λ ~ P_Λ: one window of every environment."""
    window, transitions, episodes = actor.collect(propose, max_transitions)
    return window, Sampled(transitions, episodes)


def improve(batches: Iterable[Batch], learner: Learner, push_every_updates: int, clock: Clock) -> Improved:
    """θ ← T(θ, X): train every batch that is due, until the learner diverges, and keep a copy of θ to publish.

    The paper counts from 0 and so pushes after its first update, the (N + 1)th, and so on. Nobody pulls in between, so
    only the last push counts: with N = 1 that is θ at the end, copied once.
    """
    updates: list[Metrics] = []
    published, diverged = None, None
    try:
        for batch in batches:
            with clock.measure("learning"):
                updates.append(learner.update(batch))
                if push_every_updates > 1 and (learner.updates - 1) % push_every_updates == 0:
                    published = Published(learner.parameters(), learner.updates)
    except Diverged as error:
        diverged = error
    if push_every_updates == 1 and updates:
        with clock.measure("learning"):
            published = Published(learner.parameters(), learner.updates)
    return Improved(updates, published, diverged)


def reweight(controller: Controller, sampled: Sampled) -> None:
    """P_Λ ← E(P_Λ, X): the controller learns from the returns of the episodes that ended."""
    controller.observe(sampled.episodes, sampled.transitions)


class Operators(Protocol):
    """The steps of Algorithm 1 over parts that live in this process, or in others."""

    @property
    def steps(self) -> int:
        """Transitions sampled so far."""
        ...

    def sample(self, max_transitions: int) -> Sampled | None:
        """One window, sampled and in the replay; None where actors are elsewhere and none has come for a while."""
        ...

    def improve(self, *, last: bool = False) -> Improved:
        """Train what is due; ``last``: no window will come any more, so everything is."""
        ...

    def reweight(self, sampled: Sampled) -> None: ...


def iterate(parts: Operators, total_steps: int) -> Iterator[Iteration]:
    """Algorithm 1, until exactly ``total_steps`` transitions are sampled and each is trained as often as asked.

    It may be abandoned between two iterations, and continued by another call; so that it can be while no window comes,
    it then yields empty ones. If the learner diverges, what the iteration sampled is still reweighted and yielded
    before the error is raised.
    """
    while parts.steps < total_steps:
        sampled = parts.sample(total_steps - parts.steps)
        if sampled is None:
            yield Iteration()
            continue
        improved = parts.improve()
        parts.reweight(sampled)
        yield from ended(sampled.episodes, improved)
    yield from ended([], parts.improve(last=True))


def ended(episodes: list[EpisodeEnd], improved: Improved) -> Iterator[Iteration]:
    """One iteration is over: yield it, then raise the error of its learner if there was one."""
    yield Iteration(episodes, improved.updates)
    if improved.diverged is not None:
        raise improved.diverged
