"""Evaluation on Ray: played in a process of its own, beside training."""

from __future__ import annotations

import time
from collections.abc import Callable

import ray
from ray.exceptions import RayError

from gdi.config import Config
from gdi.controller import make_controller
from gdi.evaluation import Evaluation, Evaluator
from gdi.runtime.faults import Stalled
from gdi.runtime.parts import make_evaluator, prepare_process
from gdi.runtime.ray.failures import in_a_line, is_loss, reason, told
from gdi.runtime.ray.processes import TICK_SECONDS, Arrays, Handle, Ref
from gdi.runtime.ray.tensors import device_here, to_tensors
from gdi.types import State

PING_SECONDS = 60.0
ATTEMPTS = 3


class EvaluatorWorker:
    """Plays evaluations in environments of its own; may be asked how far it is meanwhile."""

    def __init__(self, config: Config, threads: int) -> None:
        self._config = config
        self._make: Callable[[], Evaluator] = lambda: make_evaluator(
            config, device_here(config), prepare_process(threads)
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
        assert evaluation is not None  # nobody asks it to stop: it is killed instead
        return evaluation

    def _count(self) -> bool:
        self._played_steps += 1
        return False


class RemoteEvaluator:
    """The evaluator as the driver sees it. When it is lost or hangs it is replaced, and plays the evaluation again."""

    def __init__(
        self,
        start: Callable[[], Handle],
        hang_seconds: float,
        notice: Callable[[str], None],
        check_others: Callable[[], None],
    ) -> None:
        """``check_others`` raises if it was a part that the evaluation waited for which is gone."""
        self._start, self._hang_seconds = start, hang_seconds
        self._notice, self._check_others = notice, check_others
        self.handle = start()

    def begin(self, params: Ref, controller: Ref, seed: int) -> None:
        """One evaluation at a time."""
        self._request = (params, controller, seed)
        self._losses = self._played_steps = 0
        self._play()

    def _play(self) -> None:
        self._moved = time.monotonic()
        self._playing = self.handle.evaluate.remote(*self._request)

    def outcome(self, stop: Callable[[], bool], wait: bool) -> Evaluation | None:
        while True:
            done, _ = ray.wait([self._playing], timeout=TICK_SECONDS if wait else 0)
            try:
                if done:
                    evaluation: Evaluation = ray.get(self._playing)
                    return evaluation
                if self._is_hung():
                    self._play_again(f"it played nothing for {self._hang_seconds:g} s")
            except RayError as error:
                if not is_loss(error):
                    raise told(error) from None
                self._play_again(reason(error))
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
            raise Stalled(f"the evaluator was lost {self._losses} times in one evaluation", why)
        self._notice(f"Ray: the evaluator is lost and replaced: {in_a_line(why)}")
        self.close()
        self.handle = self._start()
        self._play()

    def close(self) -> None:
        ray.kill(self.handle)
