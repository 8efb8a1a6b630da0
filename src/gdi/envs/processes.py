"""Environments in subprocesses, for slow ones: each process steps a share of the copies.

Gymnasium's AsyncVectorEnv has a process per copy. Here the number of processes is chosen apart from that of the copies.
The copies have the seeds that they have in one process, so runs are equal.
"""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from gdi.config import EnvConfig
from gdi.envs.base import Beside, StepResult
from gdi.envs.copies import vectors_only
from gdi.envs.forms import find, makes_vectors, one_line
from gdi.envs.gymnasium import GymnasiumEnv
from gdi.errors import UserError
from gdi.types import Array, State

CLOSE_SECONDS = 5


class ProcessEnv:
    """N copies of an environment, in ``--env.processes`` processes."""

    def __init__(self, config: EnvConfig, num_envs: int) -> None:
        if makes_vectors(find(config)):
            raise UserError(vectors_only("--env.processes", config.id))
        self._id = config.id
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
        except UserError:
            self.close()
            raise
        self.beside: Beside

    def _call(self, method: str, arguments: list[Any]) -> list[Any]:
        """Call a method in every process at once, each with its own argument. Return the results."""
        for connection, argument in zip(self._connections, arguments, strict=True):
            connection.send((method, argument))
        return self._receive()

    def _receive(self) -> list[Any]:
        """Return one answer per process, and take what belongs beside the observations."""
        answers = []
        for connection in self._connections:
            try:
                answers.append(connection.recv())
            except (EOFError, ConnectionError):
                raise UserError(
                    f"environment {self._id!r}: a process of --env.processes ended by itself: see its messages above."
                ) from None
        for error, _, _ in answers:
            if error is not None:
                raise error
        besides = [beside for _, _, beside in answers]
        self.beside = Beside(*(np.concatenate(parts) for parts in zip(*besides, strict=True)))
        return [result for _, result, _ in answers]

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
            connection.close()  # a process ends when its connection does
        for process in self._processes:
            process.join(CLOSE_SECONDS)
            if process.is_alive():
                process.kill()


def _work(connection: Connection, config: EnvConfig, num_envs: int, others: list[Connection]) -> None:
    """Step a share of the copies, as the other end of the connection asks."""
    for other in others:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    env: GymnasiumEnv | None = None
    try:
        env = GymnasiumEnv(config, num_envs)
        connection.send((None, (env.spec,), env.beside))
        while True:
            method, argument = connection.recv()
            connection.send((None, getattr(env, method)(argument), env.beside))
    except (EOFError, ConnectionError):
        return
    except UserError as error:
        connection.send((error, None, None))
    except Exception as error:  # the environment may raise anything
        text = f"environment {config.id!r}: {type(error).__name__}: {one_line(error)}"
        connection.send((UserError(text), None, None))
    finally:
        if env is not None:
            env.close()
