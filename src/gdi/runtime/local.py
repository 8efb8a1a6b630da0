"""The local runtime: all components in one process, deterministic for a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gdi.acting.actor import Actor, Mark
from gdi.acting.parameters import ParameterServer
from gdi.clock import Clock
from gdi.config import Config
from gdi.controller import Controller, make_controller
from gdi.cores import set_torch_threads
from gdi.data import Draws, Origin, Replay, SavedFiles, Store, collector_state, make_replay, make_store
from gdi.envs import EnvSpec
from gdi.errors import EnvironmentFaultError
from gdi.evaluation import Evaluation, Evaluator
from gdi.iteration import Improved, Iteration, Published, Sampled, improve, iterate, report_then_raise, reweight, sample
from gdi.learner import Learner
from gdi.networks.precision import precision_warning
from gdi.runtime.factories import (
    closed_on_error,
    configure_process,
    make_actor,
    make_evaluator,
    make_learner,
    resolve_device,
)
from gdi.runtime.memory_plan import MemoryPlan
from gdi.runtime.metrics import controller_metrics, held_metrics
from gdi.runtime.run import EvaluationPoll
from gdi.runtime.tree import SystemState, controller_state, resumable_actor_states
from gdi.types import Batch, State, Window


@dataclass
class LocalOperators:
    """The components of a single-process run, and the steps of Algorithm 1."""

    actor: Actor
    replay: Replay
    store: Store
    learner: Learner
    parameters: ParameterServer
    controller: Controller
    clock: Clock
    push_every_updates: int
    actor_threads: int = 1  # torch threads of an actor that runs in its own thread
    steps: int = 0
    episodes: int = 0
    _before: tuple[Mark, State] | None = None  # actor and controller before the newest window

    def sample(self, max_transitions: int) -> Sampled:
        window, sampled = self.act(max_transitions)
        self.add(window, sampled)
        return sampled

    def act(self, max_transitions: int) -> tuple[Window, Sampled]:
        """Play one window and return it without storing it. A fault of an environment leaves no trace of it."""
        mark = self.actor.mark()
        self._before = None if mark is None else (mark, deepcopy(self.controller.state_dict()))
        try:
            return sample(self.actor, self.controller.propose, max_transitions)
        except EnvironmentFaultError:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Return actor and controller to where they were before the newest window.

        If the environment cannot be saved, a resumed run plays new episodes anyway.
        """
        if self._before is not None:
            mark, controller = self._before
            self.actor.rewind(mark)
            self.controller.load_state_dict(controller)

    def add(self, window: Window, sampled: Sampled) -> None:
        """Give a window to the replay, and count it."""
        self.store.put(self.replay.add(window, Origin(first_step=sampled.first_step)), window)
        self.steps += sampled.transitions
        self.episodes += len(sampled.episodes)

    def improve(self, *, last: bool = False) -> Improved:
        improved = self.train_without_publishing(last=last)
        self.publish(improved.published)
        return improved

    def train_without_publishing(self, *, last: bool = False) -> Improved:
        """Train the batches that are due. The caller publishes the new network parameters (θ)."""
        with self.clock.measure("data"):
            draws = self.replay.due(last=last)
        improved = improve(self._batches(draws), self.learner, self.push_every_updates, self.clock)
        self.replay.learned(improved.batches)
        self.store.keep(self.replay.kept())
        return improved

    def _batches(self, draws: Draws) -> Iterator[Batch]:
        for number in range(len(draws)):
            with self.clock.measure("data"):
                batch = self.store.gather(draws, number)
            assert batch is not None  # only a part of a batch may be empty
            yield batch

    def publish(self, published: Published | None) -> None:
        if published is not None:
            self.parameters.push(published.params, published.version)

    def unpublished(self) -> Published | None:
        """Return the parameters (θ) that wait for the end of a window, because a fault ended it before."""
        if self.push_every_updates > 1 or self.parameters.version == self.learner.updates:
            return None
        return Published(self.learner.parameters(), self.learner.updates)

    def reweight(self, sampled: Sampled) -> None:
        reweight(self.controller, sampled)


def train_pending(parts: LocalOperators) -> Iterator[Iteration]:
    """Train the batches that are still due after a resumed divergence.

    Until they are trained, the replay has no room for another window.
    """
    improved = parts.improve()
    if improved.batches:
        yield from report_then_raise(None, improved)


def iterate_overlapped(parts: LocalOperators, total_steps: int) -> Iterator[Iteration]:
    """Run Algorithm 1 like ``iterate``, but sample the next window while the due batches are trained.

    The data is one window older. New network parameters (θ) reach the actor only between two windows, so the lag is
    fixed and a run repeats for a seed.
    """
    with ThreadPoolExecutor(1, "actor", set_torch_threads, (parts.actor_threads,)) as thread:
        while parts.steps < total_steps:
            acting = thread.submit(parts.act, total_steps - parts.steps)
            improved = parts.train_without_publishing()
            late = improved.published or parts.unpublished()
            try:
                window, sampled = acting.result()
            except EnvironmentFaultError:
                if parts.push_every_updates > 1:
                    parts.publish(improved.published)
                yield from report_then_raise(None, improved)
                raise
            if improved.diverged is None:
                parts.add(window, sampled)
                parts.reweight(sampled)
            else:
                # Batches are still due, and there is no room for more. A resumed run plays these steps again.
                parts.take_back()
            parts.publish(late)
            yield from report_then_raise(sampled if improved.diverged is None else None, improved)
    yield from report_then_raise(None, parts.improve(last=True))


@dataclass
class LocalSystem:
    """The assembled components, and their evaluator."""

    config: Config
    spec: EnvSpec
    plan: MemoryPlan
    parts: LocalOperators
    evaluator: Evaluator
    pauses_for_evaluation: bool = True

    @property
    def clock(self) -> Clock:
        return self.parts.clock

    @property
    def steps(self) -> int:
        return self.parts.steps

    @property
    def episodes(self) -> int:
        return self.parts.episodes

    @property
    def updates(self) -> int:
        return self.parts.learner.updates

    def summary(self) -> str:
        warning = precision_warning(self.config.run.precision, resolve_device(self.config.run.device))
        return "\n".join(filter(None, [self.plan.summary(), warning]))

    def iterate(self, total_steps: int) -> Iterator[Iteration]:
        if self.config.run.overlap:
            return iterate_overlapped(self.parts, total_steps)
        return chain(train_pending(self.parts), iterate(self.parts, total_steps))

    def metrics(self) -> dict[str, float | list[float]]:
        parts = self.parts
        return {
            "learner/skipped_total": parts.learner.skipped_updates,
            "collector/waiting_sequences": parts.replay.waiting,
            **held_metrics(parts.store),
            **controller_metrics(parts.controller),
        }

    def evaluate(self, seed: int) -> EvaluationPoll:
        """Return a poll that plays the evaluation when it is called; training pauses for it."""
        parts = self.parts

        def outcome(stop: Callable[[], bool], wait: bool) -> Evaluation | None:
            return self.evaluator.evaluate(
                parts.learner.parameters(), parts.controller.propose_best, self.config.evaluation.episodes, seed, stop
            )

        return outcome

    def state_dict(self) -> State:
        parts = self.parts
        return SystemState(
            actors={0: parts.actor.state_dict()},
            collector=collector_state(
                parts.replay.state_dict(), parts.store.state_dict() if self.config.run.save_replay else {}
            ),
            learner=parts.learner.state_dict(),
            parameters=parts.parameters.state_dict(),
            controller=parts.controller.state_dict(),
            controller_slots=parts.controller.slots,
            steps=parts.steps,
            episodes=parts.episodes,
        ).tree()

    def save_replay(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        return self.parts.store.save(folder, before)

    def load_state_dict(self, state: State, replay: SavedFiles) -> bool:
        parts = self.parts
        has_replay = self.config.run.save_replay and parts.store.load(replay)
        parts.replay.load_state_dict(state["collector"], arrays=has_replay)
        if has_replay:
            parts.store.load_state_dict(state["collector"])
        parts.learner.load_state_dict(state["learner"])
        parts.parameters.load_state_dict(state["parameters"])
        parts.controller.load_state_dict(controller_state(state["controllers"], parts.controller.slots))
        actors = resumable_actor_states(state, self.config.env.num_envs)
        if 0 in actors:
            parts.actor.load_state_dict(actors[0])
        parts.steps, parts.episodes = int(state["steps"]), int(state["episodes"])
        return has_replay

    def close(self) -> None:
        self.parts.actor.close()
        self.parts.learner.close()
        self.evaluator.close()


def build(config: Config) -> LocalSystem:
    """Build all components in their initial state.

    An environment that does not work with the config raises UserError here.
    """
    device = resolve_device(config.run.device)
    threads = configure_process(config.run.threads)
    clock = Clock()
    learner, spec, plan = make_learner(config, device)  # first, because it rejects what does not fit in memory
    parameters = ParameterServer(learner.parameters())
    with (
        closed_on_error(learner),
        closed_on_error(make_actor(config, parameters, device, threads, clock)) as actor,
    ):
        parts = LocalOperators(
            actor=actor,
            replay=make_replay(config),
            store=make_store(config),
            learner=learner,
            parameters=parameters,
            controller=make_controller(config),
            clock=clock,
            push_every_updates=config.data.push_every_updates,
            # The workers already use one core each. More actor threads would only wait for each other.
            actor_threads=1 if config.run.workers > 1 else threads,
        )
        return LocalSystem(config, spec, plan, parts, make_evaluator(config, device, threads))
