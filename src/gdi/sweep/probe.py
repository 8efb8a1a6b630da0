"""A short trial of a job: whether it can be built, how fast it trains, and how much memory and disk it needs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from gdi.errors import DivergenceError, EnvironmentFaultError, UserError
from gdi.sweep.jobs import Job, config_of
from gdi.sweep.process import describe, last_line, one_thread
from gdi.sweep.worker import write_to

# A trial trains until each window is trained as often as all later ones, and then measures. Neither takes longer.
WARM_UP_SECONDS, MEASURE_SECONDS = 8.0, 3.0
# A checkpoint has θ and the two moments of the optimizer.
PARAMETERS_IN_CHECKPOINT = 3


@dataclass(frozen=True)
class Trial:
    """What a trial of a job found; ``steps_per_second`` is 0 if it was not measured."""

    steps_per_second: float
    memory_bytes: int
    disk_bytes: int


class Running:
    """A running trial of a job, in a process of its own."""

    def __init__(self, job: Job, timed: bool, log: Path) -> None:
        self._job, self._log = job, log
        context = get_context("forkserver")
        self.pipe, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=work, args=(job, timed, log, theirs))
        with one_thread():
            self._process.start()
        theirs.close()

    def answer(self) -> Trial:
        """Return what the trial found, or raise UserError if the job cannot be built."""
        try:
            answer: Mapping[str, Any] = self.pipe.recv()
        except EOFError:
            self._process.join()
            answer = {"error": f"{last_line(self._log) or describe(self._process.exitcode)}."}
        self._process.join()
        if "error" in answer:
            raise UserError(f"{self._job.agent} on {self._job.env}: {answer['error']}")
        return Trial(**answer)

    def kill(self) -> None:
        self._process.kill()


def try_jobs(jobs: Sequence[Job], timed: Callable[[Job], bool], at_once: int) -> dict[Job, Trial]:
    """Try each job in a process of its own; raise UserError for the first that cannot be built.

    Speed is measured where ``timed`` says so, with as many processes at once as the sweep will have.
    """
    found: dict[Job, Trial] = {}
    waiting, running = list(enumerate(jobs)), dict[Any, tuple[Job, Running]]()
    with tempfile.TemporaryDirectory() as logs:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    number, job = waiting.pop(0)
                    trial = Running(job, timed(job), Path(logs, f"{number}.log"))
                    running[trial.pipe] = (job, trial)
                for pipe in wait(list(running)):
                    job, trial = running.pop(pipe)
                    found[job] = trial.answer()
        finally:
            for _, trial in running.values():
                trial.kill()
    return found


def work(job: Job, timed: bool, log: Path, pipe: Connection) -> None:
    """Try a job, as the whole work of a process, and send what was found."""
    try:
        write_to(log)
    except FileNotFoundError:  # Ctrl-C ended the sweep, which removed its folder, while this process started
        return
    try:
        if job.is_peer:
            from gdi.sweep.peers import try_peer

            pipe.send(asdict(try_peer(job, WARM_UP_SECONDS if timed else 0.0)))
        else:
            pipe.send(asdict(try_gdi(job, timed)))
    except (UserError, EnvironmentFaultError) as error:
        pipe.send({"error": str(error)})


def try_gdi(job: Job, timed: bool) -> Trial:
    """Build a run, and train it for a few seconds. Nothing is written."""
    from gdi.runtime.local import build
    from gdi.runtime.memory_plan import PARAMETER_COPIES

    config = config_of(job)
    system = build(replace(config, data=config.data.early_start()) if timed else config)
    try:
        sizes = system.plan.bytes_by_purpose
        replay = (sizes["sequences"] + sizes.get("replay", 0)) if config.run.save_replay else 0
        theta = sizes["network"] // (PARAMETER_COPIES + config.run.workers)
        # The best one is kept, and one is in the making.
        checkpoints = config.run.keep_checkpoints + 2
        return Trial(
            _speed_if_it_trains(system, job.steps) if timed else 0.0,
            system.plan.total_bytes,
            checkpoints * (PARAMETERS_IN_CHECKPOINT * theta + replay),
        )
    finally:
        system.close()


def _speed_if_it_trains(system: Any, total_steps: int) -> float:
    """Return the speed, or 0 if the run diverges or its environment fails. What that means, the job itself will say."""
    try:
        return _steps_per_second(system, total_steps)
    except (DivergenceError, EnvironmentFaultError):
        return 0.0


def _steps_per_second(system: Any, total_steps: int) -> float:
    """Return the speed after the warm-up, or that of the whole run if it is shorter."""
    config = system.config
    windows = config.data.settled_windows(config.env.num_envs)
    began = since = time.perf_counter()
    steps_before = 0
    for number, _ in enumerate(system.iterate(total_steps)):
        now = time.perf_counter()
        if steps_before == 0 and (number + 1 >= windows or now - began > WARM_UP_SECONDS):
            since, steps_before = now, system.steps
        elif steps_before and now - since > MEASURE_SECONDS:
            break
    seconds = time.perf_counter() - since
    if system.steps >= total_steps or system.steps == steps_before:
        return float(system.steps / (time.perf_counter() - began))
    return float((system.steps - steps_before) / seconds)
