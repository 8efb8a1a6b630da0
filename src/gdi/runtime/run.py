"""A run: Algorithm 1 over a system, with evaluation, logging and checkpoints at their times.

A system is the assembled parts, wherever they live: in this process (``runtime.local``) or on a Ray cluster
(``runtime.ray``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gdi.clock import Clock
from gdi.config import Config
from gdi.envs import EnvSpec
from gdi.errors import Diverged
from gdi.evaluation import Evaluation, report_of
from gdi.iteration import Iteration
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.events import Event, Log, Sink
from gdi.runtime.metrics import Averages
from gdi.seeds import child_seed
from gdi.types import State

# outcome(stop, wait): the evaluation once it is played; None while it is not (and wait is false) or if stop came first.
Outcome = Callable[[Callable[[], bool], bool], "Evaluation | None"]


class System(Protocol):
    """The assembled parts of a run, wherever they live."""

    @property
    def config(self) -> Config: ...

    @property
    def spec(self) -> EnvSpec: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def steps(self) -> int: ...

    @property
    def episodes(self) -> int: ...

    @property
    def updates(self) -> int: ...

    @property
    def waits_for_evaluations(self) -> bool:
        """True: training pauses for an evaluation. False: it goes on beside it."""
        ...

    def text(self) -> str:
        """What a user should know about it before it starts."""
        ...

    def iterate(self, total_steps: int) -> Iterator[Iteration]: ...

    def metrics(self) -> dict[str, float | list[float]]:
        """The state of the parts now, for a line of the log."""
        ...

    def evaluate(self, seed: int) -> Outcome:
        """Begin an evaluation of θ and P_Λ as they are now."""
        ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...

    def close(self) -> None: ...


@dataclass
class Pending:
    """An evaluation that was begun and not yet logged."""

    outcome: Outcome
    counters: Event
    checkpoint: Path | None  # of the θ that is evaluated, where training goes on meanwhile


class Run:
    """Algorithm 1 over a system, with evaluation, logging and checkpoints at their times."""

    def __init__(self, system: System, log: Log, watchers: Sink, checkpoints: CheckpointStore) -> None:
        self._system = system
        self._config = system.config
        self._log = log
        self._watchers = watchers  # includes the log
        self._checkpoints = checkpoints
        self._averages = Averages()
        self._last = {"log": 0, "evaluation": 0, "checkpoint": 0}  # steps at which each was last done
        self._best_mean = -math.inf
        self._evaluation: Evaluation | None = None
        self._pending: Pending | None = None
        self._finished = False
        self._first_steps = system.steps  # of this session: its clock knows no more
        self._seconds_before = 0.0
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall-clock of this run over all its sessions."""
        return self._seconds_before + time.perf_counter() - self._began

    @property
    def steps(self) -> int:
        return self._system.steps

    @property
    def updates(self) -> int:
        return self._system.updates

    @property
    def frames(self) -> int:
        return self.steps * self._system.spec.frames_per_step

    @property
    def finished(self) -> bool:
        return self._finished

    def resume(self) -> bool:
        """Continue from the newest whole checkpoint; false if there is none yet."""
        state = self._checkpoints.newest()
        if state is None:
            # Killed before its first checkpoint: what was logged will be measured again.
            self._log.rewind({})
            return False
        self._system.load_state_dict(state["system"])
        self._first_steps = self.steps
        run = state["run"]
        self._averages.load_state_dict(run["averages"])
        self._last = {name: int(steps) for name, steps in run["last"].items()}
        self._best_mean = float(run["best_mean"]) if run["best_mean"] is not None else -math.inf
        self._evaluation = Evaluation(**run["evaluation"]) if run["evaluation"] else None
        self._finished = bool(run["finished"])
        self._seconds_before = float(run["seconds"])
        self._log.rewind(run["log"])
        return True

    def train(self, stop: Callable[[], bool]) -> Evaluation | None:
        """Train to the end, or until ``stop``; returns the last evaluation. The state is saved either way."""
        if self._finished:
            return self._evaluation
        try:
            self._do_what_is_due(stop)  # what a stop kept the session before from doing
            iterations = self._system.iterate(self._config.steps)
            while not stop() and (iteration := next(iterations, None)) is not None:
                self._record(iteration)
                # Also when a stop was asked for: a resumed run would do it a window later than one never stopped.
                self._do_what_is_due(stop)
            if stop():
                self._save()
                return self._evaluation
            return self._finish(stop)
        except Diverged:
            if not self._averages.is_empty or self._last["log"] < self.steps:
                self._log_training()
            self._save()
            raise

    def _finish(self, stop: Callable[[], bool]) -> Evaluation | None:
        """The end of training is always logged and evaluated; it is the result."""
        if self._last["log"] < self.steps:
            self._log_training()
        self._end_evaluation(stop, wait=True)  # of one that was begun before
        if self._pending is None:
            self._begin_evaluation()
        is_best = self._end_evaluation(stop, wait=True)
        self._finished = self._pending is None
        self._save(best=is_best)
        return self._evaluation

    def _record(self, iteration: Iteration) -> None:
        for episode in iteration.episodes:
            self._watchers.episode(self.steps, episode)
            self._averages.add({"episode/return": episode.episode_return, "episode/length_steps": episode.length_steps})
        for metrics in iteration.updates:
            self._averages.add(metrics)
        self._watchers.event({"kind": "progress", "steps": self.steps, "frames": self.frames})

    def _is_due(self, name: str, every_steps: int) -> bool:
        """True if a multiple of ``every_steps`` was passed since it was last done, however large an iteration is."""
        return self.steps // every_steps > self._last[name] // every_steps

    def _do_what_is_due(self, stop: Callable[[], bool]) -> None:
        config = self._config
        if self.steps >= config.steps:
            return  # the end does all of this itself
        if self._is_due("log", config.run.log_every_steps):
            self._log_training()
        is_best = self._evaluate_what_is_due(stop)
        if self._is_due("checkpoint", config.run.checkpoint_every_steps) or is_best:
            self._save(best=is_best)

    def _evaluate_what_is_due(self, stop: Callable[[], bool]) -> bool:
        """True if θ, as it is now, proved the best so far."""
        every_steps = self._config.evaluation.every_steps
        pending = self._pending
        if pending is not None:
            # One at a time: when the next is due before this one is played, training waits.
            self._end_evaluation(stop, wait=self.steps // every_steps > pending.counters["steps"] // every_steps)
        if self._pending is not None or not self._is_due("evaluation", every_steps):
            return False
        self._begin_evaluation()
        return self._end_evaluation(stop, wait=self._system.waits_for_evaluations)

    def _counters(self) -> Event:
        system = self._system
        return {"steps": self.steps, "frames": self.frames, "updates": system.updates, "episodes": system.episodes}

    def _log_training(self) -> None:
        """One line of everything since the last one. Times stand apart under ``clock``: all else repeats for a seed."""
        steps_since = self.steps - max(self._averages.since_steps, self._first_steps)
        seconds, shares = self._system.clock.lap()
        self._last["log"] = self.steps
        self._watchers.event(
            {
                "kind": "train",
                **self._counters(),
                **self._averages.take(self.steps),
                **self._system.metrics(),
                "clock": {
                    "seconds": self.seconds,
                    "steps_per_second": steps_since / seconds,
                    "frames_per_second": steps_since * self._system.spec.frames_per_step / seconds,
                    "shares": shares,
                },
            }
        )

    def _begin_evaluation(self) -> None:
        """Evaluate θ as it is now. Where training goes on meanwhile, θ is saved first: it may prove the best."""
        system = self._system
        checkpoint = None
        if not system.waits_for_evaluations:
            checkpoint = self._save()
            self._checkpoints.spare = checkpoint
        counters = self._counters()
        counters["training_episodes"] = counters.pop("episodes")
        seed = child_seed(self._config.seed, "evaluation", self.steps)
        self._pending = Pending(system.evaluate(seed), counters, checkpoint)

    def _end_evaluation(self, stop: Callable[[], bool], *, wait: bool) -> bool:
        """Log the evaluation that was begun, if it is done; true if its θ is the best so far and still to be saved."""
        pending = self._pending
        if pending is None:
            return False
        with self._system.clock.measure("evaluation"):
            evaluation = pending.outcome(stop, wait)
        if evaluation is None:
            return False
        self._pending = None
        self._last["evaluation"] = pending.counters["steps"]
        clock = {"seconds": self.seconds}
        self._watchers.event({"kind": "evaluation", **pending.counters, **report_of(evaluation), "clock": clock})
        is_best = evaluation.mean > self._best_mean
        self._best_mean = max(self._best_mean, evaluation.mean)
        self._evaluation = evaluation
        if pending.checkpoint is not None:
            self._checkpoints.spare = None
            if is_best:
                self._checkpoints.mark_best(pending.checkpoint)
                self._save()  # a session that resumes must know how good the best one was
            return False
        return is_best

    def _save(self, *, best: bool = False) -> Path:
        self._last["checkpoint"] = self.steps
        with self._system.clock.measure("checkpoint"):
            state = {"system": self._system.state_dict(), "run": self._state()}
            path = self._checkpoints.save(self.steps, self._system.updates, state, best=best)
        self._watchers.event({"kind": "checkpoint", "steps": self.steps, "path": str(path)})
        return path

    def _state(self) -> State:
        return {
            "averages": self._averages.state_dict(),
            "last": self._last,
            "best_mean": None if math.isinf(self._best_mean) else self._best_mean,
            "evaluation": self._evaluation.to_dict() if self._evaluation else None,
            "finished": self._finished,
            "seconds": self.seconds,
            "log": self._log.position(),
        }
