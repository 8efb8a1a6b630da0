"""Evaluation on Ray, in its own process, while training continues."""

from __future__ import annotations

import time
from collections.abc import Callable

import ray
from ray.exceptions import RayError

from gdi.config import Config
from gdi.controller import make_controller
from gdi.evaluation import Evaluation, Evaluator
from gdi.runtime.exceptions import StallError
from gdi.runtime.factories import configure_process, make_evaluator
from gdi.runtime.ray.error_mapping import describe_error, is_process_lost, one_line, to_run_error
from gdi.runtime.ray.processes import POLL_SECONDS, Arrays, Handle, Ref
from gdi.runtime.ray.tensors import assigned_device, to_tensors
from gdi.types import State

PING_SECONDS = 60.0
ATTEMPTS = 3


class EvaluatorWorker:
    """A player of evaluations in its own environments; it reports its progress when asked."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config = config
        self._make: Callable[[], Evaluator] = lambda: make_evaluator(
            config, assigned_device(config), configure_process(threads)
        )
        self._evaluator: Evaluator | None = None
        self._controller = make_controller(config)
        self._played_steps = 0

    def played_steps(self) -> int:
        return self._played_steps

    def evaluate(self, params: Arrays, controller: State, seed: int) -> Evaluation:
        self._controller.load_state_dict(controller)
        episodes = self._config.evaluation.episodes
        self._evaluator = self._evaluator or self._make()
        propose = self._controller.propose_best
        evaluation = self._evaluator.evaluate(to_tensors(params), propose, episodes, seed, self._count)
        assert evaluation is not None  # it is killed instead of being stopped
        return evaluation

    def _count(self) -> bool:
        self._played_steps += 1
        return False


class RemoteEvaluator:
    """The driver's handle to the evaluator.

    An evaluator that is lost or hangs is replaced and plays the evaluation again.
    """

    def __init__(
        self,
        start: Callable[[], Handle],
        hang_seconds: float,
        notice: Callable[[str], None],
        check_others: Callable[[], None],
    ) -> None:
        """``check_others`` raises if a process that the evaluation waited for is lost."""
        self._start, self._hang_seconds = start, hang_seconds
        self._notice, self._check_others = notice, check_others
        self.handle = start()

    def begin(self, params: Ref, controller: Ref, seed: int) -> None:
        """Start an evaluation; only one may run at a time."""
        self._request = (params, controller, seed)
        self._losses = self._played_steps = 0
        self._play()

    def _play(self) -> None:
        self._moved = time.monotonic()
        self._playing = self.handle.evaluate.remote(*self._request)

    def outcome(self, stop: Callable[[], bool], wait: bool) -> Evaluation | None:
        while True:
            done, _ = ray.wait([self._playing], timeout=POLL_SECONDS if wait else 0)
            try:
                if done:
                    evaluation: Evaluation = ray.get(self._playing)
                    return evaluation
                if self._is_hung():
                    self._play_again(f"it played nothing for {self._hang_seconds:g} s")
            except RayError as error:
                if not is_process_lost(error):
                    raise to_run_error(error) from None
                self._play_again(describe_error(error))
            if not done and (not wait or stop()):
                return None

    def _is_hung(self) -> bool:
        now = time.monotonic()
        if now - self._moved < self._hang_seconds:
            return False
        asked = self.handle.played_steps.remote()
        answered, _ = ray.wait([asked], timeout=PING_SECONDS)
        before, self._moved = self._played_steps, now
        if answered:
            self._played_steps = ray.get(asked)
        return self._played_steps == before

    def _play_again(self, why: str) -> None:
        self._check_others()
        self._losses += 1
        if self._losses > ATTEMPTS:
            raise StallError(f"the evaluator was lost {self._losses} times in one evaluation", why)
        self._notice(f"Ray: replaced the lost evaluator: {one_line(why)}")
        self.close()
        self.handle = self._start()
        self._play()

    def close(self) -> None:
        ray.kill(self.handle)
