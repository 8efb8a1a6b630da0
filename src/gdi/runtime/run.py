"""A run: Algorithm 1 over a system, with scheduled evaluation, logging and checkpoints.

A system is the assembled components, either in this process (``runtime.local``) or on a Ray cluster (``runtime.ray``).
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
from gdi.data import SavedFiles
from gdi.envs import EnvSpec
from gdi.errors import DivergenceError, EnvironmentFaultError, Fault
from gdi.evaluation import Evaluation, report_of
from gdi.iteration import Iteration
from gdi.runtime.events import Event, Sink
from gdi.runtime.files import RunFiles
from gdi.runtime.metrics import Averages
from gdi.runtime.states import StateRecorder
from gdi.runtime.storage import writing
from gdi.runtime.tree import check_windows, loading
from gdi.seeds import child_seed
from gdi.types import State

# outcome(stop, wait) returns the evaluation once it has finished. It returns None if it is still running and wait is
# false, or if stop() became true first.
EvaluationPoll = Callable[[Callable[[], bool], bool], "Evaluation | None"]


class System(Protocol):
    """The assembled components of a run, in one process or on a cluster."""

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
    def pauses_for_evaluation(self) -> bool:
        """Return True if training pauses for an evaluation, and False if both run at the same time."""
        ...

    def summary(self) -> str:
        """Return the start-up summary for the user."""
        ...

    def iterate(self, total_steps: int) -> Iterator[Iteration]: ...

    def metrics(self) -> dict[str, float | list[float]]:
        """Return the current state of the components for a log line."""
        ...

    def evaluate(self, seed: int) -> EvaluationPoll:
        """Start an evaluation of the current network parameters (θ) and controller (P_Λ)."""
        ...

    def state_dict(self) -> State: ...

    def save_replay(self, folder: Path, before: SavedFiles | None) -> SavedFiles:
        """Write the replay's files into a checkpoint's folder, or link those in the checkpoint ``before``."""
        ...

    def load_state_dict(self, state: State, replay: SavedFiles) -> bool:
        """Continue from a checkpoint; return False if the replay's steps are not in it, and it begins empty."""
        ...

    def close(self) -> None: ...


@dataclass
class PendingEvaluation:
    """A started evaluation that is not logged yet."""

    outcome: EvaluationPoll
    counters: Event
    checkpoint: Path | None  # of the evaluated θ, if training continues during the evaluation


class Run:
    """Algorithm 1 over a system, with scheduled evaluation, logging and checkpoints."""

    def __init__(self, system: System, files: RunFiles, watchers: Sink, states: StateRecorder | None = None) -> None:
        self._system = system
        self._config = system.config
        self._files = files
        self._watchers = watchers  # includes the log
        self._states = states
        self._averages = Averages()
        self._last = {"log": 0, "evaluation": 0, "checkpoint": 0}  # step count at the last time of each
        self._best_mean = -math.inf
        self._evaluation: Evaluation | None = None
        self._pending: PendingEvaluation | None = None
        self._finished = False
        self._restarts = 0  # environments that failed and were replaced
        self._first_steps = system.steps  # of this session, because the clock covers only this session
        self._seconds_before = 0.0
        self._began = time.perf_counter()
        self._ended: float | None = None  # when the run finished, also in an earlier session

    @property
    def seconds(self) -> float:
        """Return the wall-clock seconds of this run over all its sessions."""
        now = time.perf_counter() if self._ended is None else self._ended
        return self._seconds_before + now - self._began

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
        """Continue from the newest complete checkpoint; return False if there is none yet."""
        state = self._files.newest()
        if state is None:
            # The run was killed before its first checkpoint, so it will repeat everything it logged.
            self._files.rewind({})
            return False
        replay = self._files.checkpoints.replay
        assert replay is not None
        with loading(str(self._files.folder)):
            check_windows(state["system"]["collector"], self._config.data.window_steps)
            has_replay = self._system.load_state_dict(state["system"], replay)
            self._load_state_dict(state["run"])
            position = dict(state["run"]["log"])
        self._first_steps = self.steps
        self._files.rewind(position)
        if not has_replay and not self._finished:
            self._watchers.event({"kind": "notice", "text": self._refill_text()})
        return True

    def _load_state_dict(self, run: State) -> None:
        self._averages.load_state_dict(run["averages"])
        self._last = {name: int(steps) for name, steps in run["last"].items()}
        self._best_mean = float(run["best_mean"]) if run["best_mean"] is not None else -math.inf
        self._evaluation = Evaluation.from_state(run["evaluation"]) if run["evaluation"] else None
        self._finished = bool(run["finished"])
        self._restarts = int(run.get("restarts", 0))
        self._seconds_before = float(run["seconds"])
        self._ended = self._began if self._finished else None
        if self._states is not None and "states" in run:
            self._states.load_state_dict(run["states"])

    def _refill_text(self) -> str:
        first = getattr(self._config.data, "learn_start_transitions", 0)
        steps = f"{first:,} steps fill it again before the next update" if first else "its waiting uses are dropped"
        return (
            f"The checkpoint has no replay memory for this run: {steps}. Results differ from those of an unbroken run."
        )

    def train(self, stop: Callable[[], bool]) -> Evaluation | None:
        """Train to the end or until ``stop``, save the state, and return the last evaluation."""
        if self._finished:
            return self._evaluation
        try:
            self._run_due_tasks(stop)  # tasks that a stop prevented in the previous session
            iterations = self._system.iterate(self._config.steps)
            while not stop() and (iteration := next(iterations, None)) is not None:
                self._record(iteration)
                # Do this even after a stop request. Otherwise a resumed run would do it one window later than an
                # uninterrupted one.
                self._run_due_tasks(stop)
            if stop():
                self._save_last()
                return self._evaluation
            return self._finish(stop)
        except DivergenceError:
            if not self._averages.is_empty or self._last["log"] < self.steps:
                self._log_training()
            self._save_last()
            raise
        except EnvironmentFaultError as error:
            self._note_fault(error.fault)
            self._save()
            raise

    def _finish(self, stop: Callable[[], bool]) -> Evaluation | None:
        """Log and evaluate the end of training, which is always the result."""
        if self._last["log"] < self.steps:
            self._log_training()
        self._end_evaluation(stop, wait=True)  # first, an evaluation that is already running
        if self._pending is None:
            self._begin_evaluation()
        is_best = self._end_evaluation(stop, wait=True)
        self._finished = self._pending is None
        if self._finished:
            self._ended = time.perf_counter()
        self._save_last(best=is_best)
        return self._evaluation

    def _record(self, iteration: Iteration) -> None:
        for episode in iteration.episodes:
            self._watchers.episode(self.steps, episode)
            self._averages.add({"episode/return": episode.episode_return, "episode/length_steps": episode.length_steps})
        for metrics in iteration.updates:
            self._averages.add(metrics)
        if self._states is not None:
            self._states.add(self.steps, iteration.states)
        for fault in iteration.faults:
            self._restarts += 1
            self._note_fault(fault)
            self._watchers.event({"kind": "notice", "text": f"Started a fresh copy after a fault: {fault}"})
        self._watchers.event({"kind": "progress", "steps": self.steps, "frames": self.frames})

    def _note_fault(self, fault: Fault) -> None:
        event = {"kind": "fault", "steps": self.steps, "text": str(fault), "trace": fault.trace}
        self._watchers.event(event)

    def _is_due(self, name: str, every_steps: int) -> bool:
        """Return True if a multiple of ``every_steps`` was passed since the last time.

        This holds for any size of iteration.
        """
        return self.steps // every_steps > self._last[name] // every_steps

    def _run_due_tasks(self, stop: Callable[[], bool]) -> None:
        config = self._config
        if self.steps >= config.steps:
            return  # _finish does all of this
        if self._is_due("log", config.run.log_every_steps):
            self._log_training()
        is_best = self._evaluate_if_due(stop)
        if self._is_due("checkpoint", config.run.checkpoint_every_steps) or is_best or self._files.must_save:
            self._save(best=is_best)

    def _evaluate_if_due(self, stop: Callable[[], bool]) -> bool:
        """Return True if the current network parameters (θ) proved the best so far."""
        every_steps = self._config.evaluation.every_steps
        pending = self._pending
        if pending is not None:
            # Only one evaluation runs at a time. If the next is due before this one has finished, training waits.
            self._end_evaluation(stop, wait=self.steps // every_steps > pending.counters["steps"] // every_steps)
        if self._pending is not None or not self._is_due("evaluation", every_steps):
            return False
        self._begin_evaluation()
        return self._end_evaluation(stop, wait=self._system.pauses_for_evaluation)

    def _counters(self) -> Event:
        system = self._system
        return {"steps": self.steps, "frames": self.frames, "updates": system.updates, "episodes": system.episodes}

    def _log_training(self) -> None:
        """Write a line with everything since the last one.

        Times are under ``clock``, and all other values repeat for a seed.
        """
        self._files.restore()
        steps_since = self.steps - max(self._averages.since_steps, self._first_steps)
        seconds, shares = self._system.clock.lap()
        self._last["log"] = self.steps
        self._watchers.event(
            {
                "kind": "train",
                **self._counters(),
                **self._averages.take(self.steps),
                **self._system.metrics(),
                **({"env/restarts_total": self._restarts} if self._config.env.restart_on_error else {}),
                "clock": {
                    "seconds": self.seconds,
                    "steps_per_second": steps_since / seconds,
                    "frames_per_second": steps_since * self._system.spec.frames_per_step / seconds,
                    "shares": shares,
                },
            }
        )

    def _begin_evaluation(self) -> None:
        """Start an evaluation of the current network parameters (θ).

        If training continues during the evaluation, θ is saved first, because it may prove the best.
        """
        system = self._system
        checkpoint = None
        if not system.pauses_for_evaluation:
            checkpoint = self._save()
            self._files.checkpoints.protected = checkpoint
        counters = self._counters()
        counters["training_episodes"] = counters.pop("episodes")
        seed = child_seed(self._config.seed, "evaluation", self.steps)
        self._pending = PendingEvaluation(system.evaluate(seed), counters, checkpoint)

    def _end_evaluation(self, stop: Callable[[], bool], *, wait: bool) -> bool:
        """Log the started evaluation if it has finished.

        Return True if its network parameters (θ) are the best so far and still have to be saved.
        """
        pending = self._pending
        if pending is None:
            return False
        with self._system.clock.measure("evaluation"):
            evaluation = pending.outcome(stop, wait)
        if evaluation is None:
            return False
        self._pending = None
        self._files.restore()
        self._last["evaluation"] = pending.counters["steps"]
        clock = {"seconds": self.seconds}
        self._watchers.event({"kind": "evaluation", **pending.counters, **report_of(evaluation), "clock": clock})
        is_best = evaluation.mean > self._best_mean
        self._best_mean = max(self._best_mean, evaluation.mean)
        self._evaluation = evaluation
        if pending.checkpoint is not None:
            self._files.checkpoints.protected = None
            if is_best:
                self._files.mark_best(pending.checkpoint)
                self._save()  # a resumed session must know the best score
            return False
        return is_best

    def _save_last(self, *, best: bool = False) -> None:
        """Save the state, and check that it is still there, because the run ends by saying so."""
        self._save(best=best)
        if self._files.restore():
            self._save(best=best)

    def _save(self, *, best: bool = False) -> Path:
        self._last["checkpoint"] = self.steps
        with self._system.clock.measure("checkpoint"):
            save_replay = self._system.save_replay if self._config.run.save_replay else None
            path = self._files.save(self.steps, self._system.updates, self._state, best=best, save_replay=save_replay)
            if self._states is not None:
                with writing(self._files.folder):
                    self._states.write()
        self._watchers.event({"kind": "checkpoint", "steps": self.steps, "path": str(path)})
        return path

    def _state(self, position: State) -> State:
        system = self._system.state_dict()
        return {"system": system, "run": self._run_state(position)}

    def _run_state(self, position: State) -> State:
        return {
            "averages": self._averages.state_dict(),
            "last": self._last,
            "best_mean": None if math.isinf(self._best_mean) else self._best_mean,
            "evaluation": self._evaluation.state_dict() if self._evaluation else None,
            "finished": self._finished,
            "seconds": self.seconds,
            "log": position,
            **({} if self._states is None else {"states": self._states.state_dict()}),
            **({"restarts": self._restarts} if self._restarts else {}),
        }
