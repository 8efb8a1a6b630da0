"""All parts of a run on a Ray cluster, as one system: Algorithm 1's steps, each sent to where its part lives."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gdi.clock import Clock
from gdi.config import Config, PlacementConfig
from gdi.envs import EnvSpec
from gdi.evaluation import Evaluation
from gdi.iteration import Iteration, Sampled, iterate
from gdi.learner import Diverged
from gdi.runtime.faults import PartLost, Stalled
from gdi.runtime.parts import actor_states, share_environments
from gdi.runtime.ray.failures import in_a_line, is_loss, reason, user_error
from gdi.runtime.ray.pool import TICK_SECONDS, ActorPool
from gdi.runtime.ray.workers import (
    ActorWorker,
    CollectorWorker,
    ControllerWorker,
    EvaluatorWorker,
    Handle,
    LearnerWorker,
    ParameterWorker,
    Ref,
)
from gdi.runtime.run import Outcome
from gdi.types import EpisodeEnd, Metrics, State

PING_SECONDS = 60.0
EVALUATION_ATTEMPTS = 3


class RaySystem:
    """The driver's view of a run: it holds handles and references, and none of the data."""

    def __init__(
        self, config: Config, placement: PlacementConfig, notice: Callable[[str], None], wanted: Callable[[], int]
    ) -> None:
        """``wanted`` says how many actors there should be now; the placement says with how many it begins."""
        self.config, self.placement = config, placement
        self.clock = Clock()
        self.steps = self.episodes = self.updates = 0
        self._skipped = 0
        # Training that the learners have been sent, oldest first, and what came of it and was not yet told.
        self._training: deque[list[Ref]] = deque()
        self._reweighting: Ref | None = None
        self._updates: list[Metrics] = []
        self._diverged: str | None = None
        self._notice = notice
        per_actor = placement.envs_per_actor or config.env.num_envs // placement.actors
        self._actor_config = share_environments(config, per_actor)
        self._whole_config = share_environments(config, per_actor * placement.actors)
        self._parts: dict[str, Handle] = {}  # all but the actors and the evaluator
        self._learners: list[Handle] = []
        self._evaluator: Handle | None = None
        transitions = per_actor * config.learner.sequence_steps
        self._pool = ActorPool(self._make_actor, placement, transitions, wanted, notice, self._check_parts)
        self._started = False
        try:
            self._place()
        except BaseException:
            self.close()
            raise

    def _place(self) -> None:
        p, config = self.placement, self._whole_config
        threads = _threads(p.learner_cpus)
        # On the driver's own node if it has room: then the loss of any other node costs no more than its actors.
        home = ray.get_runtime_context().get_node_id()
        here = NodeAffinitySchedulingStrategy(home, soft=True, _spill_on_unavailable=True)
        self._learners = [
            _start(LearnerWorker, p.learner_cpus, p.learner_gpus, config, threads, strategy=here)
            for _ in range(p.learners)
        ]
        node, address = self._get(self._learners[0].where.remote())
        started = self._get([one.start.remote(address, rank, p.learners) for rank, one in enumerate(self._learners)])
        self.spec: EnvSpec
        self.spec, self._plan = started[0]
        # What the learner reads at every update lives beside it.
        beside = NodeAffinitySchedulingStrategy(node, soft=False)
        self._parts = {
            "learner": self._learners[0],
            "collector": _start(
                CollectorWorker, 0, 0, config, config.learner.replay_span_windows * p.actors, strategy=beside
            ),
            "controller": _start(ControllerWorker, 0, 0, config, strategy=beside),
            "server": _start(ParameterWorker, 0, 0, strategy=beside),
        }
        self._get(self._learners[0].publish_first.remote(self._parts["server"]))
        # Now, though it is needed later: actors that join must not take its place.
        self._evaluator = self._start_evaluator()
        self._get(self._evaluator.played_steps.remote())

    def _start_evaluator(self) -> Handle:
        p = self.placement
        args = (self._whole_config, _threads(p.evaluator_cpus))
        return _start(EvaluatorWorker, p.evaluator_cpus, p.evaluator_gpus, *args, max_concurrency=2)

    def _make_actor(self, number: int, which: tuple[int, ...]) -> Handle:
        p = self.placement
        args = (_threads(p.actor_cpus), self._parts["controller"], self._parts["server"])
        return _start(
            ActorWorker, p.actor_cpus, p.actor_gpus, self._actor_config, number, which, *args, strategy="SPREAD"
        )

    @property
    def waits_for_evaluations(self) -> bool:
        return self.placement.lockstep

    def text(self) -> str:
        p, per_actor = self.placement, self._actor_config.env.num_envs
        nodes = sum(node["Alive"] for node in ray.nodes())
        return (
            f"Ray: {p.actors} actors with {per_actor} environments each, {p.learners} learners, on {nodes} nodes"
            f"{', in lockstep' if p.lockstep else ''}\n{self._plan}"
        )

    # Algorithm 1

    def iterate(self, total_steps: int) -> Iterator[Iteration]:
        return iterate(self, total_steps)

    def sample(self, max_transitions: int) -> Sampled[Ref]:
        """The next window that any actor finishes and that reaches the collector."""
        with self.clock.measure("sampling"):
            if not self._started:
                self._pool.start()
                self._started = True
            while True:
                delivered = self._pool.next(max_transitions)
                try:
                    accepted = self._parts["collector"].accept.remote([delivered.window])
                    ray.get(accepted, timeout=self.placement.stall_seconds)
                except RayError as error:
                    self._check_parts()
                    if not is_loss(error):  # a full store, or a mistake: it would happen again and again
                        raise self._told(error) from None
                    self._pool.dropped_total += 1
                    self._notice(f"Ray: a window of actor {delivered.actor} was lost: {in_a_line(reason(error))}")
                    continue
                report = delivered.report
                self.steps += report.transitions
                self.episodes += len(report.episodes)
                return Sampled(delivered.window, report.transitions, report.episodes)

    def collect(self, window: Ref) -> None:
        """It is with the collector already; the coming ``improve`` adds it to what is due."""

    def improve(self, *, last: bool = False) -> tuple[list[Metrics], Diverged | None]:
        """Send the learner what is due, and return what it did with what was due before.

        So it has its next batches before it is done with these, and never waits for a message. In lockstep, and at the
        end, this waits for everything.
        """
        due = self._parts["collector"].take.remote(last)
        self._training.append([learner.improve.remote(due, self._parts["server"]) for learner in self._learners])
        while len(self._training) > (0 if last or self.placement.lockstep else 1):
            self._finish_oldest()
        updates, self._updates = self._updates, []
        return updates, None if self._diverged is None else Diverged(self._diverged)

    def _finish_oldest(self) -> None:
        updates, diverged, counters = self._get(self._training.popleft())[0]
        self._updates += updates
        self._diverged = self._diverged or diverged
        self.updates, self._skipped = counters.updates, counters.skipped
        self.clock.add(counters.seconds)

    def reweight(self, episodes: list[EpisodeEnd]) -> None:
        before, self._reweighting = self._reweighting, self._parts["controller"].reweight.remote(episodes)
        if before is not None:
            self._get(before)
        if self.placement.lockstep:
            self._get(self._reweighting)

    # What surrounds it

    def metrics(self) -> dict[str, float | list[float]]:
        collector, controller = self._parts["collector"].metrics.remote(), self._parts["controller"].metrics.remote()
        return {
            "learner/skipped_total": self._skipped,
            **self._get(collector),
            **self._get(controller),
            **self._pool.metrics(),
        }

    def evaluate(self, seed: int) -> Outcome:
        """Played by the evaluator, beside training; a lost evaluator is replaced and plays it again."""
        params = self._learners[0].parameters.remote()
        controllers = self._parts["controller"].state_dict.remote()
        hang_seconds = self.placement.hang_seconds
        lost = played = 0
        moved = time.monotonic()
        assert self._evaluator is not None
        playing = self._evaluator.evaluate.remote(params, controllers, seed)

        def again(why: str) -> None:
            nonlocal lost, moved, playing
            self._check_parts()  # it may have waited for one of them
            lost += 1
            if lost > EVALUATION_ATTEMPTS:
                raise Stalled(f"the evaluator was lost {lost} times in one evaluation", why)
            self._notice(f"Ray: the evaluator is lost and replaced: {in_a_line(why)}")
            ray.kill(self._evaluator)
            self._evaluator = self._start_evaluator()
            moved = time.monotonic()
            playing = self._evaluator.evaluate.remote(params, controllers, seed)

        def is_hung() -> bool:
            nonlocal played, moved
            now = time.monotonic()
            if now - moved < hang_seconds:
                return False
            assert self._evaluator is not None
            done, _ = ray.wait([asked := self._evaluator.played_steps.remote()], timeout=PING_SECONDS)
            before, played = played, ray.get(asked) if done else played
            moved = now
            return played == before

        def outcome(stop: Callable[[], bool], wait: bool) -> Evaluation | None:
            while True:
                done, _ = ray.wait([playing], timeout=TICK_SECONDS if wait else 0)
                try:
                    if done:
                        evaluation: Evaluation = ray.get(playing)
                        return evaluation
                    if is_hung():
                        again(f"it played nothing for {hang_seconds:g} s")
                except RayError as error:
                    if not is_loss(error):
                        raise self._told(error) from None
                    again(reason(error))
                if not done and (not wait or stop()):
                    return None

        return outcome

    def state_dict(self) -> State:
        while self._training:  # so that steps, updates and θ belong together
            self._finish_oldest()
        parts = self._parts
        learner, collector = parts["learner"].state_dict.remote(), parts["collector"].state_dict.remote()
        [reference], version = self._get(parts["server"].pull.remote(None))
        actors = self._pool.state_dicts() if self._started else {}
        return {
            # Under the local runtime's names, so that a run may be continued by either.
            **({"actor": actors.pop(0)} if 0 in actors else {}),
            "more_actors": {str(number): state for number, state in actors.items()},
            "envs_per_actor": self._actor_config.env.num_envs,
            "collector": self._get(collector),
            "learner": self._get(learner),
            "parameters": {"params": self._get(reference), "version": version},
            "controllers": self._get(parts["controller"].state_dict.remote()),
            "steps": self.steps,
            "episodes": self.episodes,
        }

    def load_state_dict(self, state: State) -> None:
        """Continue, with as many actors as there are now: those that have a state of the same size go on from it."""
        parts, learner = self._parts, ray.put(state["learner"])
        self._get([one.load_state_dict.remote(learner) for one in self._learners])
        self._get(parts["collector"].load_state_dict.remote(state["collector"]))
        self._get(parts["controller"].load_state_dict.remote(state["controllers"]))
        theta = state["parameters"]
        self._get(parts["server"].push.remote([ray.put(theta["params"])], int(theta["version"])))
        counters = self._get(parts["learner"].counters.remote())
        self.updates, self._skipped = counters.updates, counters.skipped
        self.steps, self.episodes = int(state["steps"]), int(state["episodes"])
        saved_by_local = {"envs_per_actor": self.config.env.num_envs}
        self._pool.start(actor_states({**saved_by_local, **state}, self._actor_config.env.num_envs), self.steps)
        self._started = True

    def close(self) -> None:
        self._pool.close()
        for part in {*self._learners, *self._parts.values(), *([self._evaluator] if self._evaluator else [])}:
            ray.kill(part)
        self._learners, self._parts, self._evaluator = [], {}, None

    # Waiting for the parts

    def _get(self, references: Any) -> Any:
        """What they refer to; PartLost if a part is gone, Stalled if nothing comes."""
        try:
            return ray.get(references, timeout=self.placement.stall_seconds)
        except GetTimeoutError:
            what = f"no answer for {self.placement.stall_seconds:g} s{_why_waiting()}"
            raise Stalled(what, self._pool.first_error) from None
        except RayError as error:
            raise self._told(error) from None

    def _told(self, error: RayError) -> Exception:
        if (bad_input := user_error(error)) is not None:
            return bad_input
        return PartLost(reason(error)) if is_loss(error) else RuntimeError(reason(error))

    def _check_parts(self) -> None:
        """PartLost if a part that an actor talks to is gone: then it is that part which must be replaced."""
        pings = [part.__ray_ready__.remote() for part in {*self._learners, *self._parts.values()}]
        try:
            ray.get(pings, timeout=PING_SECONDS)
        except GetTimeoutError:
            return  # busy, not gone
        except RayError as error:
            raise self._told(error) from None


def _start(
    worker: type, cpus: float, gpus: float, *args: Any, strategy: Any = "DEFAULT", max_concurrency: int = 1
) -> Handle:
    """One process. Ray keeps no record of every call: a run makes millions, and its server would grow with them."""
    remote = _remote(worker).options(
        num_cpus=cpus,
        num_gpus=gpus,
        max_restarts=0,
        max_concurrency=max_concurrency,
        scheduling_strategy=strategy,
        enable_task_events=False,
    )
    return remote.remote(*args)


@cache
def _remote(worker: type) -> Any:
    """Made once a class: each one is stored by Ray for good."""
    return ray.remote(worker)


def _threads(cpus: float) -> int:
    return max(1, int(cpus))


def _why_waiting() -> str:
    free = ray.available_resources()
    return f" (the cluster has {free.get('CPU', 0):g} CPUs and {free.get('GPU', 0):g} GPUs free)"
