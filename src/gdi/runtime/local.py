"""The local runtime: every part in one process, deterministic for a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from gdi.acting.collector import Collector
from gdi.acting.parameters import ParameterServer
from gdi.clock import Clock
from gdi.config import Config
from gdi.controller import make_controllers
from gdi.envs import EnvSpec
from gdi.evaluation import Evaluation, Evaluator
from gdi.iteration import Iteration, Parts, controller_of, iterate, iterate_overlapped, train_left_over
from gdi.networks.precision import precision_warning
from gdi.runtime.metrics import collector_metrics, controller_metrics
from gdi.runtime.parts import (
    actor_states,
    make_actor,
    make_evaluator,
    make_learner,
    prepare_process,
    resolve_device,
)
from gdi.runtime.plan import MemoryPlan
from gdi.runtime.run import Outcome
from gdi.seeds import collector_rng
from gdi.types import State, sequence_of


@dataclass
class LocalSystem:
    """The assembled parts, and the evaluator beside them."""

    config: Config
    spec: EnvSpec
    plan: MemoryPlan
    parts: Parts
    evaluator: Evaluator
    waits_for_evaluations: bool = True

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

    def text(self) -> str:
        warning = precision_warning(self.config.run.precision, resolve_device(self.config.run.device))
        return "\n".join(filter(None, [self.plan.text(), warning]))

    def iterate(self, total_steps: int) -> Iterator[Iteration]:
        if self.config.run.overlap:
            return iterate_overlapped(self.parts, total_steps)
        return chain(train_left_over(self.parts), iterate(self.parts, total_steps))

    def metrics(self) -> dict[str, float | list[float]]:
        parts = self.parts
        return {
            "learner/skipped_total": parts.learner.skipped_updates,
            **collector_metrics(parts.collector),
            **controller_metrics(parts.controllers),
        }

    def evaluate(self, seed: int) -> Outcome:
        """Played when its outcome is asked for, at once: nothing else goes on meanwhile."""
        parts = self.parts

        def outcome(stop: Callable[[], bool], wait: bool) -> Evaluation | None:
            return self.evaluator.evaluate(
                parts.learner.parameters(),
                lambda env, rng: controller_of(parts.controllers, env).propose_best(rng),
                self.config.evaluation.episodes,
                seed,
                stop,
            )

        return outcome

    def state_dict(self) -> State:
        parts = self.parts
        return {
            "actor": parts.actor.state_dict(),
            "collector": parts.collector.state_dict(),
            "learner": parts.learner.state_dict(),
            "parameters": parts.parameters.state_dict(),
            "controllers": {str(i): controller.state_dict() for i, controller in enumerate(parts.controllers)},
            "steps": parts.steps,
            "episodes": parts.episodes,
        }

    def load_state_dict(self, state: State) -> None:
        parts = self.parts
        parts.collector.load_state_dict(state["collector"])
        parts.learner.load_state_dict(state["learner"])
        parts.parameters.load_state_dict(state["parameters"])
        for i, controller in enumerate(parts.controllers):
            if str(i) in state["controllers"]:  # there may be more environments than on Ray, and one for each
                controller.load_state_dict(state["controllers"][str(i)])
        actors = actor_states(state, self.config.env.num_envs)
        if 0 in actors:
            parts.actor.load_state_dict(actors[0])
        parts.steps, parts.episodes = int(state["steps"]), int(state["episodes"])

    def close(self) -> None:
        self.parts.actor.close()
        self.parts.learner.close()
        self.evaluator.close()


def build(config: Config) -> LocalSystem:
    """Every part, in its initial state. Bad combinations of environment and config raise UserError here."""
    device = resolve_device(config.run.device)
    threads = prepare_process(config.run.threads)
    clock = Clock()
    learner, spec, plan = make_learner(config, device)  # first: it refuses what does not fit
    parameters = ParameterServer(learner.parameters())
    parts = Parts(
        actor=make_actor(config, parameters, device, threads, clock),
        collector=Collector(config.learner, collector_rng(config), sequence_of),
        learner=learner,
        parameters=parameters,
        controllers=make_controllers(config),
        clock=clock,
        push_every_updates=config.learner.push_every_updates,
        # Beside workers that have a core each, more threads would only wait for each other.
        actor_threads=1 if config.learner.workers > 1 else threads,
    )
    return LocalSystem(config, spec, plan, parts, make_evaluator(config, device, threads))
