"""Algorithm 1, Generalized Data Distribution Iteration (alg:GDI). Every runtime runs through this page.

Initialize Λ, Θ, P_Λ^(0), θ^(0)
for t = 0, 1, 2, ...
    Sample {X^(t)_{ρ0,λ}} with λ ~ P_Λ^(t)             sample
    θ^(t+1)   = T(θ^(t),   {X^(t)_{ρ0,λ}})              improve
    P_Λ^(t+1) = E(P_Λ^(t), {X^(t)_{ρ0,λ}})              reweight
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gdi.acting import Actor, Collector, ParameterServer
from gdi.clock import Clock
from gdi.controller import Controller
from gdi.learner import Learner
from gdi.types import EpisodeEnd, Index, Metrics, Sequence


@dataclass
class Parts:
    """What one run consists of, built once by ``runtime.system``."""

    actor: Actor
    collector: Collector
    learner: Learner
    parameters: ParameterServer
    controllers: list[Controller]  # one for all environments, or one for each
    clock: Clock
    push_every_updates: int
    steps: int = 0  # transitions sampled so far
    episodes: int = 0

    def controller_of(self, env: int) -> Controller:
        return self.controllers[env % len(self.controllers)]


@dataclass(frozen=True)
class Iteration:
    """What happened in one t."""

    episodes: list[EpisodeEnd] = field(default_factory=list)
    updates: list[Metrics] = field(default_factory=list)


def sample(parts: Parts, max_transitions: int) -> tuple[Sequence, list[EpisodeEnd]]:
    """Sample {X_{ρ0,λ}}, λ ~ P_Λ: one window of every environment."""

    def propose(env: int) -> Index:
        return parts.controller_of(env).propose()

    window, episodes = parts.actor.collect(propose, max_transitions)
    first = len(window.valid) - parts.actor.trained_steps
    parts.steps += int(window.valid[first:].sum())
    parts.episodes += len(episodes)
    return window, episodes


def improve(parts: Parts, stop: Callable[[], bool], *, last: bool) -> Iterator[Metrics]:
    """θ ← T(θ, X): train every batch that is due, pushing θ to the actors now and then."""
    while not stop():
        with parts.clock.measure("data"):
            batch = parts.collector.next_batch(allow_partial=last)
        if batch is None:
            return
        with parts.clock.measure("learning"):
            metrics = parts.learner.update(batch)
            if parts.learner.updates % parts.push_every_updates == 0:
                parts.parameters.push(parts.learner.parameters(), parts.learner.updates)
        yield metrics


def reweight(parts: Parts, episodes: list[EpisodeEnd]) -> None:
    """P_Λ ← E(P_Λ, X): the controllers learn from the returns of the episodes that ended."""
    for episode in episodes:
        parts.controller_of(episode.env).observe(episode.index, episode.episode_return)


def iterate(parts: Parts, total_steps: int, stop: Callable[[], bool]) -> Iterator[Iteration]:
    """Algorithm 1, until exactly ``total_steps`` transitions are sampled and each is trained as often as asked.

    It may be abandoned between two iterations, and within ``improve`` when ``stop`` turns true: what was due stays due,
    and the next call continues with it.
    """
    while parts.steps < total_steps:
        episodes: list[EpisodeEnd] = []
        if parts.collector.has_room:
            window, episodes = sample(parts, total_steps - parts.steps)
            parts.collector.add(window)
        updates = list(improve(parts, stop, last=False))
        reweight(parts, episodes)
        yield Iteration(episodes, updates)
        if stop():
            return
    parts.collector.finish()
    yield Iteration(updates=list(improve(parts, stop, last=True)))
