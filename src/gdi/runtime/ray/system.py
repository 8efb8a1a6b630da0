"""A run's components on a Ray cluster as one system; Algorithm 1's steps go to their processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gdi.clock import Clock
from gdi.config import Config
from gdi.controller import make_controller
from gdi.data import Origin, SavedFiles
from gdi.envs import EnvSpec
from gdi.errors import DivergenceError, EnvironmentFaultError
from gdi.iteration import Improved, Iteration, Sampled, iterate
from gdi.placement import PlacementConfig
from gdi.runtime.exceptions import ProcessLostError, StallError
from gdi.runtime.factories import wider_replay, with_num_envs
from gdi.runtime.ray.actor_worker import ActorWorker
from gdi.runtime.ray.collector_worker import CollectorWorker
from gdi.runtime.ray.error_mapping import one_line, to_run_error
from gdi.runtime.ray.evaluator_worker import PING_SECONDS, EvaluatorWorker, RemoteEvaluator
from gdi.runtime.ray.learner_worker import LearnerCounters, LearnerWorker, RemoteImproved
from gdi.runtime.ray.pool import ActorPool
from gdi.runtime.ray.processes import Handle, Ref, start_process, threads_for
from gdi.runtime.ray.services import ControllerWorker, ParameterWorker
from gdi.runtime.run import EvaluationPoll
from gdi.runtime.tree import SystemState, controller_state, resumable_actor_states
from gdi.types import Metrics, State


class RaySystem:
    """The driver's view of a run. It holds handles and references, and none of the data."""

    def __init__(
        self, config: Config, placement: PlacementConfig, notice: Callable[[str], None], wanted: Callable[[], int]
    ) -> None:
        """``wanted`` returns the requested number of actors; the placement has the initial number."""
        self.config, self.placement = config, placement
        self.clock = Clock()
        self.steps = self.episodes = self.updates = 0
        self._skipped = 0
        self._memory: Metrics = {}  # metrics of the replay, if the learners hold its steps
        # Training that was sent to the learners, oldest first. Its results wait below until they are reported.
        self._training: deque[list[Ref]] = deque()
        self._reweighting: Ref | None = None
        self._updates: list[Metrics] = []
        self._diverged: str | None = None
        self._notice = notice
        per_actor = placement.envs_per_actor or config.env.num_envs // placement.actors
        self._actor_config = with_num_envs(config, per_actor)
        self._whole_config = with_num_envs(config, per_actor * placement.actors)
        self._parts: dict[str, Handle] = {}  # without the actors and the evaluator
        self._learners: list[Handle] = []
        self._evaluator: RemoteEvaluator | None = None
        transitions = per_actor * config.data.sequence_steps
        self._pool = ActorPool(self._make_actor, placement, transitions, wanted, notice, self._check_parts)
        self._started = False
        try:
            self._place()
        except BaseException:
            self.close()
            raise

    def _place(self) -> None:
        p, config = self.placement, self._whole_config
        make_controller(config)  # a mistake in a user's own, inside another process, would look like a lost process
        threads = threads_for(p.learner_cpus)
        # Prefer the driver's node. The loss of any other node then costs only its actors.
        home = ray.get_runtime_context().get_node_id()
        here = NodeAffinitySchedulingStrategy(home, soft=True, _spill_on_unavailable=True)
        self._learners = [
            start_process(LearnerWorker, p.learner_cpus, p.learner_gpus, config, threads, p.actors, strategy=here)
            for _ in range(p.learners)
        ]
        node, address = self._get(self._learners[0].location.remote())
        started = self._get([one.start.remote(address, rank, p.learners) for rank, one in enumerate(self._learners)])
        self.spec: EnvSpec
        self.spec, self._plan = started[0]
        # The data that the learner reads at every update is on the learner's node.
        beside = NodeAffinitySchedulingStrategy(node, soft=False)
        self._parts = {
            "learner": self._learners[0],
            "collector": start_process(
                CollectorWorker, 0, 0, wider_replay(config, p.actors), p.actors, strategy=beside
            ),
            "controller": start_process(ControllerWorker, 0, 0, config, p.lockstep, strategy=beside),
            "server": start_process(ParameterWorker, 0, 0, strategy=beside),
        }
        self._slots: int = self._get(self._parts["controller"].slots.remote())
        self._get(self._learners[0].publish_initial.remote(self._parts["server"]))
        # Start the evaluator early, because actors that join must not take its place.
        self._evaluator = RemoteEvaluator(self._start_evaluator, p.hang_seconds, self._notice, self._check_parts)
        self._get(self._evaluator.handle.played_steps.remote())

    def _start_evaluator(self) -> Handle:
        p = self.placement
        args = (self._whole_config, threads_for(p.evaluator_cpus))
        return start_process(EvaluatorWorker, p.evaluator_cpus, p.evaluator_gpus, *args, max_concurrency=2)

    def _make_actor(self, number: int, which: tuple[int, ...]) -> Handle:
        p = self.placement
        args = (threads_for(p.actor_cpus), self._parts["controller"], self._parts["server"], p.lockstep, self._slots)
        return start_process(
            ActorWorker, p.actor_cpus, p.actor_gpus, self._actor_config, number, which, *args, strategy="SPREAD"
        )

    @property
    def pauses_for_evaluation(self) -> bool:
        return self.placement.lockstep

    def summary(self) -> str:
        p, per_actor = self.placement, self._actor_config.env.num_envs
        nodes = sum(node["Alive"] for node in ray.nodes())
        return (
            f"Ray: {_many(p.actors, 'actor')} with {_many(per_actor, 'environment')} each, "
            f"{_many(p.learners, 'learner')}, on {_many(nodes, 'node')}{', in lockstep' if p.lockstep else ''}\n"
            f"{self._plan}"
        )

    def iterate(self, total_steps: int) -> Iterator[Iteration]:
        return iterate(self, total_steps)

    def sample(self, max_transitions: int) -> Sampled | None:
        """Return the next window that an actor finishes and that reaches the collector.

        Return None if there is none within POLL_SECONDS.
        """
        with self.clock.measure("sampling"):
            if not self._started:
                self._pool.start()
                self._started = True
            try:
                delivered = self._pool.next(max_transitions)
                while delivered is None and self.placement.lockstep:
                    # A stop only between two windows leaves the same state as the local runtime.
                    delivered = self._pool.next(max_transitions)
            except EnvironmentFaultError:
                self._get(self._parts["controller"].take_back.remote())
                raise
            if delivered is None:
                return None
            try:
                origin = Origin(delivered.actor, delivered.sampled.first_step)
                self._get(self._parts["collector"].accept.remote([delivered.window], origin))
            except ProcessLostError as error:
                self._check_parts()  # if the collector lives, only the window is lost
                self._pool.dropped_total += 1
                self._notice(f"Ray: a window of actor {delivered.actor} was lost: {one_line(str(error))}")
                return None
            self.steps += delivered.sampled.transitions
            self.episodes += len(delivered.sampled.episodes)
            return delivered.sampled

    def improve(self, *, last: bool = False) -> Improved:
        """Send the learner the due batches, and return the results of the previous ones.

        The learner thus has its next batches before it finishes these, and never waits for a message. In lockstep, and
        at the end, this waits for all results.
        """
        due = self._parts["collector"].take.remote(last)
        self._training.append([learner.improve.remote(due, self._parts["server"]) for learner in self._learners])
        while len(self._training) > (0 if last or self.placement.lockstep else 1):
            self._finish_oldest()
        updates, self._updates = self._updates, []
        return Improved(updates, diverged=None if self._diverged is None else DivergenceError(self._diverged))

    def _finish_oldest(self) -> None:
        improved: RemoteImproved = self._get(self._training.popleft())[0]
        self._get([*improved.published, self._parts["collector"].learned.remote(improved.batches)])
        self._updates += improved.updates
        self._diverged = self._diverged or improved.diverged
        self._take_counters(improved.counters)
        self.clock.add(improved.counters.seconds)

    def _take_counters(self, counters: LearnerCounters) -> None:
        self.updates, self._skipped, self._memory = counters.updates, counters.skipped, counters.memory

    def reweight(self, sampled: Sampled) -> None:
        sampled = replace(sampled, states=None)  # the controller has no use for them
        before, self._reweighting = self._reweighting, self._parts["controller"].reweight.remote(sampled)
        if before is not None:
            self._get(before)
        if self.placement.lockstep:
            self._get(self._reweighting)

    def metrics(self) -> dict[str, float | list[float]]:
        collector, controller = self._parts["collector"].metrics.remote(), self._parts["controller"].metrics.remote()
        return {
            "learner/skipped_total": self._skipped,
            **self._get(collector),
            **self._memory,
            **self._get(controller),
            **self._pool.metrics(),
        }

    def evaluate(self, seed: int) -> EvaluationPoll:
        """Start an evaluation in the evaluator while training continues.

        A lost evaluator is replaced and plays it again.
        """
        params = self._learners[0].parameters.remote()
        controller = self._parts["controller"].state_dict.remote()
        evaluator = self._evaluator
        assert evaluator is not None
        evaluator.begin(params, controller, seed)
        return evaluator.outcome

    def state_dict(self) -> State:
        while self._training:  # so that steps, updates and θ match
            self._finish_oldest()
        parts = self._parts
        learner, collector = parts["learner"].state_dict.remote(), parts["collector"].state_dict.remote()
        [reference], version = self._get(parts["server"].pull.remote(None))
        actors = self._pool.state_dicts() if self._started else {}
        return SystemState(
            actors=actors,
            collector=self._get(collector),
            learner=self._get(learner),
            parameters={"params": self._get(reference), "version": version},
            controller=self._get(parts["controller"].state_dict.remote()),
            controller_slots=self._slots,
            steps=self.steps,
            episodes=self.episodes,
            envs_per_actor=self._actor_config.env.num_envs,
        ).tree()

    def save_replay(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        if before is not None:
            before = replace(before, folder=before.folder.absolute())
        saved: SavedFiles = self._get(self._parts["learner"].save_replay.remote(folder.absolute(), before))
        return saved

    def _load_replay(self, replay: SavedFiles) -> bool:
        """Let every learner of the group read its copy; return False if the replay begins empty."""
        replay = replace(replay, folder=replay.folder.absolute())
        return self.config.run.save_replay and all(
            self._get([learner.load_replay.remote(replay) for learner in self._learners])
        )

    def load_state_dict(self, state: State, replay: SavedFiles) -> bool:
        """Continue with the current number of actors.

        Actors continue from their saved state if it has the same size.
        """
        parts, learner = self._parts, ray.put(state["learner"])
        self._get([one.load_state_dict.remote(learner) for one in self._learners])
        has_replay = self._load_replay(replay)
        self._get(parts["collector"].load_state_dict.remote(state["collector"], has_replay))
        controller = controller_state(state["controllers"], self._slots)
        self._get(parts["controller"].load_state_dict.remote(controller))
        theta = state["parameters"]
        self._get(parts["server"].push.remote([ray.put(theta["params"])], int(theta["version"])))
        self._take_counters(self._get(parts["learner"].counters.remote()))
        self.steps, self.episodes = int(state["steps"]), int(state["episodes"])
        saved_by_local = {"envs_per_actor": self.config.env.num_envs}
        self._pool.start(
            resumable_actor_states({**saved_by_local, **state}, self._actor_config.env.num_envs), self.steps
        )
        self._started = True
        return has_replay

    def close(self) -> None:
        self._pool.close()
        if self._evaluator is not None:
            self._evaluator.close()
        for part in {*self._learners, *self._parts.values()}:
            ray.kill(part)
        self._learners, self._parts, self._evaluator = [], {}, None

    def _get(self, references: Any) -> Any:
        """Return the referenced objects.

        Raise ProcessLostError if a process is lost, and StallError if there is no answer.
        """
        try:
            return ray.get(references, timeout=self.placement.stall_seconds)
        except GetTimeoutError:
            what = f"no answer for {self.placement.stall_seconds:g} s{_why_waiting()}"
            raise StallError(what, self._pool.first_error) from None
        except RayError as error:
            raise to_run_error(error) from None

    def _check_parts(self) -> None:
        """Raise ProcessLostError if a process that the actors depend on is lost, and must be replaced first."""
        pings = [part.__ray_ready__.remote() for part in {*self._learners, *self._parts.values()}]
        try:
            ray.get(pings, timeout=PING_SECONDS)
        except GetTimeoutError:
            return  # busy, but alive
        except RayError as error:
            raise to_run_error(error) from None


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _why_waiting() -> str:
    free = ray.available_resources()
    return f" (the cluster has {free.get('CPU', 0):g} CPUs and {free.get('GPU', 0):g} GPUs free)"
