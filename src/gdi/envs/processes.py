"""Environments in subprocesses, for slow ones: each process steps a share of the copies.

Gymnasium's AsyncVectorEnv has a process per copy. Here the number of processes is chosen apart from that of the copies.
The copies have the seeds that they have in one process, so runs are equal.
"""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from gdi.config import EnvConfig
from gdi.envs.base import Beside, StepResult
from gdi.envs.copies import vectors_only
from gdi.envs.forms import find, makes_vectors
from gdi.envs.guard import fault_of
from gdi.envs.gymnasium import GymnasiumEnv
from gdi.errors import EnvironmentFaultError, Fault, UserError
from gdi.types import Array, State

CLOSE_SECONDS = 5
CLOSE = "close"  # what a process is told at the end


class Answer(NamedTuple):
    """What a process answers: an error, or a result and what belongs to it."""

    error: Exception | None
    result: Any = None
    beside: Beside | None = None
    faults: tuple[Fault, ...] = ()


class ProcessEnv:
    """N copies of an environment, in ``--env.processes`` processes."""

    guards_copies = True  # each process guards its own

    def __init__(self, config: EnvConfig, num_envs: int) -> None:
        if makes_vectors(find(config)):
            raise UserError(vectors_only("--env.processes", config.id))
        self._id = config.id
        self._timeout_seconds = 0.0  # making an environment may take longer
        self.num_envs = num_envs
        count = min(config.processes, num_envs)
        self._bounds = [i * num_envs // count for i in range(count + 1)]
        sizes = [int(size) for size in np.diff(self._bounds)]
        # As Gymnasium does: a fork needs no import of the user's script, and hands any object over.
        context: Any = multiprocessing.get_context("fork")
        self._processes: list[Any] = []
        self._connections: list[Connection] = []
        for size in sizes:
            here, there = context.Pipe()
            self._connections.append(here)
            # A fork also has our ends, which it must close: otherwise no process sees when we close them.
            arguments = (there, replace(config, processes=0), size, list(self._connections))
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
        try:
            self.spec = self._receive()[0][0]
        except (UserError, EnvironmentFaultError):
            self.close()
            raise
        self._timeout_seconds = config.timeout_seconds
        self.beside: Beside
        self.faults: tuple[Fault, ...]

    def _call(self, method: str, arguments: list[Any]) -> list[Any]:
        """Call a method in every process at once, each with its own argument. Return the results."""
        for number, argument in enumerate(arguments):
            try:
                self._connections[number].send((method, argument))
            except ConnectionError as error:
                raise self._death(number, error) from None
        return self._receive()

    def _receive(self) -> list[Any]:
        """Return one answer per process, and take what belongs beside the observations."""
        answers = [self._answer(number) for number in range(len(self._connections))]
        for first, answer in zip(self._bounds, answers, strict=False):
            if isinstance(answer.error, EnvironmentFaultError):
                raise EnvironmentFaultError(_numbered(answer.error.fault, first))
            if answer.error is not None:
                raise answer.error
        self.beside = Beside(*(np.concatenate(parts) for parts in zip(*(a.beside for a in answers), strict=True)))
        self.faults = tuple(
            _numbered(fault, first) for first, a in zip(self._bounds, answers, strict=False) for fault in a.faults
        )
        return [answer.result for answer in answers]

    def _answer(self, number: int) -> Answer:
        """Return the answer of one process, or raise EnvironmentFaultError if there is none."""
        connection, share = self._connections[number], self._bounds[number + 1] - self._bounds[number]
        # A process watches its own copies, one after another. This limit is for one that cannot even do that.
        limit = self._timeout_seconds * (share + 1)
        try:
            if limit and not connection.poll(limit):
                raise EnvironmentFaultError(Fault(self._id, f"a process gave no answer for {limit:g} s", ""))
            answer: Answer = connection.recv()
            return answer
        except (EOFError, ConnectionError) as error:
            raise self._death(number, error) from None

    def _death(self, number: int, error: Exception) -> EnvironmentFaultError:
        self._processes[number].join(CLOSE_SECONDS)
        what = f"a process of --env.processes died, with exit code {self._processes[number].exitcode}"
        return EnvironmentFaultError(fault_of(self._id, error)._replace(what=what))

    def reset(self, seed: int) -> Array:
        seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(self.num_envs)]
        shares = [seeds[a:b] for a, b in zip(self._bounds, self._bounds[1:], strict=False)]
        return np.concatenate(self._call("reset_copies", shares))

    def step(self, action: Array) -> StepResult:
        shares = [action[a:b] for a, b in zip(self._bounds, self._bounds[1:], strict=False)]
        return StepResult(*(np.concatenate(parts) for parts in zip(*self._call("step", shares), strict=True)))

    def state_dict(self) -> State | None:
        return None  # Gymnasium cannot save an environment

    def load_state_dict(self, state: State) -> Array:
        raise ValueError("a Gymnasium environment cannot be restored: reset it instead.")

    def close(self) -> None:
        for connection in self._connections:
            with suppress(ConnectionError):  # it has ended already
                connection.send((CLOSE, None))
            connection.close()
        for process in self._processes:
            process.join(CLOSE_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


def _numbered(fault: Fault, first: int) -> Fault:
    """Return the fault with the copy's number among those of all processes."""
    return fault if fault.copy is None else fault._replace(copy=first + fault.copy)


def _work(connection: Connection, config: EnvConfig, num_envs: int, others: list[Connection]) -> None:
    """Step a share of the copies, as the other end of the connection asks."""
    for other in others:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    env: GymnasiumEnv | None = None
    try:
        env = GymnasiumEnv(config, num_envs)
        connection.send(Answer(None, (env.spec,), env.beside))
        while True:
            try:
                method, argument = connection.recv()
            except (EOFError, ConnectionError):
                return
            if method == CLOSE:
                return
            connection.send(Answer(None, getattr(env, method)(argument), env.beside, env.faults))
    except (UserError, EnvironmentFaultError) as error:
        connection.send(Answer(error))
    except Exception as error:  # the environment may raise anything
        connection.send(Answer(EnvironmentFaultError(fault_of(config.id, error))))
    finally:
        if env is not None:
            env.close()
