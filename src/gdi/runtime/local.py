"""The local runtime: one process, deterministic for a seed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from gdi.evaluation import Evaluation
from gdi.iteration import Iteration, iterate
from gdi.learner import Diverged
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.events import Event, Log, Sink
from gdi.runtime.metrics import Averages, controller_metrics
from gdi.runtime.system import System, child_seed
from gdi.types import State


class LocalRun:
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
        self._finished = False
        self._seconds_before = 0.0
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall-clock of this run over all its sessions."""
        return self._seconds_before + time.perf_counter() - self._began

    @property
    def steps(self) -> int:
        return self._system.parts.steps

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
            iterations = iterate(self._system.parts, self._config.steps, overlap=self._config.run.overlap)
            while not stop() and (iteration := next(iterations, None)) is not None:
                self._record(iteration)
                # Also when a stop was asked for: a resumed run would do it a window later than one never stopped.
                self._do_what_is_due(stop)
        except Diverged:
            self._log_training()
            self._save()
            raise
        if stop():
            self._save()
            return self._evaluation
        # The end of training is always logged and evaluated; it is the result.
        if self._last["log"] < self.steps:
            self._log_training()
        outcome = self._evaluate(stop)
        self._finished = outcome is not None
        self._save(best=bool(outcome))
        return self._evaluation

    def _record(self, iteration: Iteration) -> None:
        for episode in iteration.episodes:
            self._watchers.episode(self.steps, episode)
            self._averages.add({"episode/return": episode.episode_return, "episode/length_steps": episode.length_steps})
        for metrics in iteration.updates:
            self._averages.add(metrics)
        self._watchers.event({"kind": "progress", "steps": self.steps, "frames": self.frames})

    def _is_due(self, name: str, every_steps: int) -> bool:
        """True once for each multiple of ``every_steps`` that was passed, however large an iteration is."""
        if self.steps // every_steps > self._last[name] // every_steps:
            self._last[name] = self.steps
            return True
        return False

    def _do_what_is_due(self, stop: Callable[[], bool]) -> None:
        config = self._config
        if self.steps >= config.steps:
            return  # the end does all of this itself
        if self._is_due("log", config.run.log_every_steps):
            self._log_training()
        outcome: bool | None = False
        evaluated_before = self._last["evaluation"]
        if self._is_due("evaluation", config.evaluation.every_steps):
            outcome = self._evaluate(stop)
            if outcome is None:
                self._last["evaluation"] = evaluated_before  # still due, for the session that resumes
        if self._is_due("checkpoint", config.run.checkpoint_every_steps) or outcome:
            self._save(best=bool(outcome))

    def _counters(self) -> Event:
        parts = self._system.parts
        return {
            "steps": self.steps,
            "frames": self.frames,
            "updates": parts.learner.updates,
            "episodes": parts.episodes,
        }

    def _log_training(self) -> None:
        """One line of everything since the last one. Times stand apart under ``clock``: all else repeats for a seed."""
        parts = self._system.parts
        steps_since = self.steps - self._averages.since_steps
        seconds, shares = parts.clock.lap()
        self._last["log"] = self.steps
        self._watchers.event(
            {
                "kind": "train",
                **self._counters(),
                **self._averages.take(self.steps),
                "learner/skipped_total": parts.learner.skipped_updates,
                "collector/windows": parts.collector.num_windows,
                "collector/waiting_sequences": parts.collector.waiting,
                "collector/bytes": parts.collector.num_bytes,
                **controller_metrics(parts.controllers),
                "clock": {
                    "seconds": self.seconds,
                    "steps_per_second": steps_since / seconds,
                    "frames_per_second": steps_since * self._system.spec.frames_per_step / seconds,
                    "shares": shares,
                },
            }
        )

    def _evaluate(self, stop: Callable[[], bool]) -> bool | None:
        """Evaluate and log it: true if it is the best mean so far, None if ``stop`` came before it was done."""
        parts, config = self._system.parts, self._config
        with parts.clock.measure("evaluation"):
            evaluation = self._system.evaluator.evaluate(
                parts.learner.parameters(),
                lambda env, rng: parts.controller_of(env).propose_best(rng),
                config.evaluation.episodes,
                child_seed(config.seed, "evaluation", self.steps),
                stop,
            )
        if evaluation is None:
            return None
        counters = self._counters()
        counters["training_episodes"] = counters.pop("episodes")
        clock = {"seconds": self.seconds}
        self._watchers.event({"kind": "evaluation", **counters, **evaluation.to_dict(), "clock": clock})
        is_best = evaluation.mean > self._best_mean
        self._best_mean = max(self._best_mean, evaluation.mean)
        self._evaluation = evaluation
        return is_best

    def _save(self, *, best: bool = False) -> None:
        self._last["checkpoint"] = self.steps
        with self._system.parts.clock.measure("checkpoint"):
            state = {"system": self._system.state_dict(), "run": self._state()}
            path = self._checkpoints.save(self.steps, self._system.parts.learner.updates, state, best=best)
        self._watchers.event({"kind": "checkpoint", "steps": self.steps, "path": str(path)})

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
