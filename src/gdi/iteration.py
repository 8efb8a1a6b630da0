"""Algorithm 1, Generalized Data Distribution Iteration (alg:GDI). Every runtime runs through this page.

Initialize Λ, Θ, P_Λ^(0), θ^(0)
for t = 0, 1, 2, ...
    Sample {X^(t)_{ρ0,λ}} with λ ~ P_Λ^(t)             sample
    θ^(t+1)   = T(θ^(t),   {X^(t)_{ρ0,λ}})              improve
    P_Λ^(t+1) = E(P_Λ^(t), {X^(t)_{ρ0,λ}})              reweight
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from torch import Tensor

from gdi.acting import Actor, Collector, ParameterServer
from gdi.clock import Clock
from gdi.controller import Controller
from gdi.cores import keep_torch_threads
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
    actor_threads: int = 1  # torch threads of the actor, where it has a thread of its own
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


Push = Callable[[dict[str, Tensor], int], None]


def improve(parts: Parts, push: Push, *, last: bool = False) -> Iterator[Metrics]:
    """θ ← T(θ, X): train every batch that is due, pushing θ and its version now and then."""
    while True:
        with parts.clock.measure("data"):
            batch = parts.collector.next_batch(allow_partial=last)
        if batch is None:
            return
        with parts.clock.measure("learning"):
            metrics = parts.learner.update(batch)
            # The paper counts from 0 and so pushes after its first update, the (N + 1)th, and so on.
            if (parts.learner.updates - 1) % parts.push_every_updates == 0:
                push(parts.learner.parameters(), parts.learner.updates)
        yield metrics


def reweight(parts: Parts, episodes: list[EpisodeEnd]) -> None:
    """P_Λ ← E(P_Λ, X): the controllers learn from the returns of the episodes that ended."""
    for episode in episodes:
        parts.controller_of(episode.env).observe(episode.index, episode.episode_return)


def iterate(parts: Parts, total_steps: int, *, overlap: bool = False) -> Iterator[Iteration]:
    """Algorithm 1, until exactly ``total_steps`` transitions are sampled and each is trained as often as asked.

    With ``overlap`` the next window is sampled while the batches that are due are trained, so the data is one window
    older; θ reaches the actor only between two windows, so the lag is fixed and a run repeats for a seed.
    It may be abandoned between two iterations, and continued by another call. Should the learner diverge, what the
    iteration sampled is still reweighted and yielded before the error is raised.
    """
    with ThreadPoolExecutor(1, "actor", keep_torch_threads, (parts.actor_threads,)) as thread:
        while parts.steps < total_steps:
            left = total_steps - parts.steps
            yield from _overlapped(parts, left, thread) if overlap else _in_turn(parts, left)
    parts.collector.finish()
    updates, diverged = _train(parts, parts.parameters.push, last=True)
    yield from _ended([], updates, diverged)


def _in_turn(parts: Parts, left: int) -> Iterator[Iteration]:
    window, episodes = sample(parts, left)
    parts.collector.add(window)
    updates, diverged = _train(parts, parts.parameters.push)
    reweight(parts, episodes)
    yield from _ended(episodes, updates, diverged)


def _overlapped(parts: Parts, left: int, thread: ThreadPoolExecutor) -> Iterator[Iteration]:
    newest: dict[int, dict[str, Tensor]] = {}  # at most one θ, by version

    def hold(params: dict[str, Tensor], version: int) -> None:
        newest.clear()
        newest[version] = params

    sampling = thread.submit(sample, parts, left)
    updates, diverged = _train(parts, hold)
    window, episodes = sampling.result()
    if diverged is None:  # otherwise batches are still due, and no room for more
        parts.collector.add(window)
    reweight(parts, episodes)
    for version, params in newest.items():
        parts.parameters.push(params, version)
    yield from _ended(episodes, updates, diverged)


def _train(parts: Parts, push: Push, *, last: bool = False) -> tuple[list[Metrics], Diverged | None]:
    updates: list[Metrics] = []
    try:
        for metrics in improve(parts, push, last=last):
            updates.append(metrics)  # one by one: what came before an error is kept
    except Diverged as error:
        return updates, error
    return updates, None


def _ended(episodes: list[EpisodeEnd], updates: list[Metrics], diverged: Diverged | None) -> Iterator[Iteration]:
    yield Iteration(episodes, updates)
    if diverged is not None:
        raise diverged
