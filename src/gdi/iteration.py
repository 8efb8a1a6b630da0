"""Algorithm 1, Generalized Data Distribution Iteration (alg:GDI). Every runtime uses this module.

Initialize Λ, Θ, P_Λ^(0), θ^(0)
for t = 0, 1, 2, ...
    Sample {X^(t)_{ρ0,λ}} with λ ~ P_Λ^(t)             sample
    θ^(t+1)   = T(θ^(t),   {X^(t)_{ρ0,λ}})              improve
    P_Λ^(t+1) = E(P_Λ^(t), {X^(t)_{ρ0,λ}})              reweight

The three steps are functions that take the components they need, so each runs in the process that holds them. A
runtime implements ``Operators``, and ``iterate`` is the loop over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gdi.clock import Clock
from gdi.controller import Controller
from gdi.errors import DivergenceError, Fault
from gdi.types import Batch, EpisodeEnd, Metrics, SeenStates, Window

if TYPE_CHECKING:  # ``reweight`` also runs in a process that holds only the controller and does not import torch
    from torch import Tensor

    from gdi.acting.actor import Actor, Propose
    from gdi.learner import Learner


@dataclass(frozen=True)
class Sampled:
    """The number of transitions, the finished episodes and some states of one sampled window, without its arrays."""

    transitions: int
    episodes: list[EpisodeEnd]
    first_step: int  # of the window, among all steps of its actor
    faults: tuple[Fault, ...] = ()  # of environments that were replaced
    states: SeenStates | None = None


@dataclass(frozen=True)
class Published:
    """A copy of the network parameters (θ) for the actors; the version counts the updates behind it."""

    params: dict[str, Tensor]
    version: int


@dataclass(frozen=True)
class Improved:
    """The result of training some batches: metrics per update, parameters to publish, and a divergence."""

    updates: list[Metrics] = field(default_factory=list)
    published: Published | None = None
    diverged: DivergenceError | None = None

    @property
    def batches(self) -> int:
        """Number of batches that were trained, and the one that diverged, if any."""
        return len(self.updates) + (self.diverged is not None)


@dataclass(frozen=True)
class Iteration:
    """The episodes that ended, the updates made, the environments replaced and the states picked in one iteration t."""

    episodes: list[EpisodeEnd] = field(default_factory=list)
    updates: list[Metrics] = field(default_factory=list)
    faults: tuple[Fault, ...] = ()
    states: SeenStates | None = None


def sample(actor: Actor, propose: Propose, max_transitions: int) -> tuple[Window, Sampled]:
    """Play one window in every environment: {X_{ρ0,λ}} with λ ~ P_Λ."""
    first_step = actor.acted_steps
    window, transitions, episodes = actor.collect(propose, max_transitions)
    return window, Sampled(transitions, episodes, first_step, actor.take_faults(), actor.picked_states())


def improve(batches: Iterable[Batch], learner: Learner, push_every_updates: int, clock: Clock) -> Improved:
    """Train the due batches until one diverges, and copy the parameters to publish: θ ← T(θ, X).

    Let N be ``push_every_updates``. Parameters are pushed after updates 1, N + 1, 2N + 1, ..., because the paper counts
    from 0. No actor pulls between two updates, so only the last push counts. With N = 1 that is the final θ.
    """
    updates: list[Metrics] = []
    published, diverged = None, None
    try:
        for batch in batches:
            with clock.measure("learning"):
                updates.append(learner.update(batch))
                if push_every_updates > 1 and (learner.updates - 1) % push_every_updates == 0:
                    published = Published(learner.parameters(), learner.updates)
    except DivergenceError as error:
        diverged = error
    if push_every_updates == 1 and updates:
        with clock.measure("learning"):
            published = Published(learner.parameters(), learner.updates)
    return Improved(updates, published, diverged)


def reweight(controller: Controller, sampled: Sampled) -> None:
    """Update the controller with the returns of the episodes that ended: P_Λ ← E(P_Λ, X)."""
    controller.observe(sampled.episodes, sampled.transitions)


class Operators(Protocol):
    """The steps of Algorithm 1, over components in this process or in others."""

    @property
    def steps(self) -> int:
        """Transitions sampled so far."""
        ...

    def sample(self, max_transitions: int) -> Sampled | None:
        """Sample one window and add it to the replay.

        Return None if the actors are in other processes and no window has arrived for a while.
        """
        ...

    def improve(self, *, last: bool = False) -> Improved:
        """Train the batches that are due; with ``last`` no window follows, so everything is due."""
        ...

    def reweight(self, sampled: Sampled) -> None: ...


def iterate(operators: Operators, total_steps: int) -> Iterator[Iteration]:
    """Run Algorithm 1 until ``total_steps`` transitions are sampled, then train what is still due.

    The caller may stop between two iterations, and another call continues. While no window arrives, empty iterations
    are yielded, so that the caller can stop then as well. If the learner diverges, the controller still learns from the
    sampled episodes, and the iteration is yielded before the error is raised.
    """
    while operators.steps < total_steps:
        sampled = operators.sample(total_steps - operators.steps)
        if sampled is None:
            yield Iteration()
            continue
        improved = operators.improve()
        operators.reweight(sampled)
        yield from report_then_raise(sampled, improved)
    yield from report_then_raise(None, operators.improve(last=True))


def report_then_raise(sampled: Sampled | None, improved: Improved) -> Iterator[Iteration]:
    """Yield a finished iteration, then raise the learner's error if it diverged."""
    if sampled is None:
        yield Iteration(updates=improved.updates)
    else:
        yield Iteration(sampled.episodes, improved.updates, sampled.faults, sampled.states)
    if improved.diverged is not None:
        raise improved.diverged
