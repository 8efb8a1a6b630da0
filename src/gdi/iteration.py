"""Algorithm 1, Generalized Data Distribution Iteration (alg:GDI). Every runtime runs through this page.

Initialize Λ, Θ, P_Λ^(0), θ^(0)
for t = 0, 1, 2, ...
    Sample {X^(t)_{ρ0,λ}} with λ ~ P_Λ^(t)             sample
    θ^(t+1)   = T(θ^(t),   {X^(t)_{ρ0,λ}})              improve
    P_Λ^(t+1) = E(P_Λ^(t), {X^(t)_{ρ0,λ}})              reweight
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gdi.acting import Actor, Collector, ParameterServer
from gdi.clock import Clock
from gdi.controller import Controller
from gdi.learner import Diverged, Learner
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


def improve(parts: Parts, *, last: bool) -> Iterator[Metrics]:
    """θ ← T(θ, X): train every batch that is due, pushing θ to the actors now and then."""
    while True:
        with parts.clock.measure("data"):
            batch = parts.collector.next_batch(allow_partial=last)
        if batch is None:
            return
        with parts.clock.measure("learning"):
            metrics = parts.learner.update(batch)
            # The paper counts from 0 and so pushes after its first update, the (N + 1)th, and so on.
            if (parts.learner.updates - 1) % parts.push_every_updates == 0:
                parts.parameters.push(parts.learner.parameters(), parts.learner.updates)
        yield metrics


def reweight(parts: Parts, episodes: list[EpisodeEnd]) -> None:
    """P_Λ ← E(P_Λ, X): the controllers learn from the returns of the episodes that ended."""
    for episode in episodes:
        parts.controller_of(episode.env).observe(episode.index, episode.episode_return)


def iterate(parts: Parts, total_steps: int) -> Iterator[Iteration]:
    """Algorithm 1, until exactly ``total_steps`` transitions are sampled and each is trained as often as asked.

    It may be abandoned between two iterations, and continued by another call. Should the learner diverge, what the
    iteration sampled is still reweighted and yielded before the error is raised.
    """
    while parts.steps < total_steps:
        window, episodes = sample(parts, total_steps - parts.steps)
        parts.collector.add(window)
        yield from _improve_and_reweight(parts, episodes, last=False)
    parts.collector.finish()
    yield from _improve_and_reweight(parts, [], last=True)


def _improve_and_reweight(parts: Parts, episodes: list[EpisodeEnd], *, last: bool) -> Iterator[Iteration]:
    updates: list[Metrics] = []
    diverged = None
    try:
        for metrics in improve(parts, last=last):
            updates.append(metrics)  # one by one: what came before an error is kept
    except Diverged as error:
        diverged = error
    reweight(parts, episodes)
    yield Iteration(episodes, updates)
    if diverged is not None:
        raise diverged
