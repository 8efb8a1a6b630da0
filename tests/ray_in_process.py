"""Ray's calls without its processes: every call is answered at once, in this process.

What Ray would send is pickled here as well, so no two workers share an object. A run in lockstep waits for each answer
in turn, so it does the same as on Ray. A worker can be lost between two calls. What processes do cannot be shown: that
they start, compute at once, and die while they compute.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import ray.cloudpickle as pickle
from ray.exceptions import ActorDiedError, RayActorError, RayTaskError

from gdi.errors import DivergenceError, EnvironmentFaultError, UserError


@dataclass(frozen=True)
class Reference:
    """The number of a stored object."""

    number: int


class ProcessEndsError(BaseException):
    """Raised by an environment that would end its process. Nobody but Ray sees such an end."""


class RayInProcess:
    """The objects and workers of one run."""

    def __init__(self) -> None:
        self._objects: dict[int, bytes] = {}
        self._workers: dict[int, Any] = {}
        self._numbers = count()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Answer the calls of ``gdi.runtime.ray`` until the test ends."""
        context = SimpleNamespace(get_node_id=lambda: "1" * 56, get_accelerator_ids=dict)
        answers = {
            "is_initialized": lambda: True,
            "nodes": lambda: [{"Alive": True}],
            "get_runtime_context": lambda: context,
            "put": self.put,
            "get": self.get,
            "wait": lambda references, **_: (list(references), []),
            "kill": lambda handle: self._workers.pop(handle.number, None),
        }
        for name, answer in answers.items():
            patch.setattr(ray, name, answer)
        patch.setattr("gdi.runtime.ray.system.start_process", self.start)
        for module in ("services", "actor_worker"):  # this process keeps its priority
            patch.setattr(f"gdi.runtime.ray.{module}.lower_priority", lambda: None)
        patch.setattr(f"{__name__}.HERE", [self])

    def start(self, worker: type, cpus: float, gpus: float, *args: Any, **_: Any) -> Handle:
        number = next(self._numbers)
        self._workers[number] = worker(*pickle.loads(pickle.dumps(args)))
        return Handle(number)

    def lose(self, worker: str) -> None:
        """Let the first worker of this class die. Who calls it learns so, as in Ray."""
        del self._workers[next(n for n, one in self._workers.items() if type(one).__name__ == worker)]

    def put(self, value: Any) -> Reference:
        reference = Reference(next(self._numbers))
        self._objects[reference.number] = pickle.dumps(value)
        return reference

    def get(self, references: Any, timeout: float | None = None) -> Any:
        if isinstance(references, Reference):
            found = pickle.loads(self._objects[references.number])
            if isinstance(found, RayTaskError):
                raise found.as_instanceof_cause()
            if isinstance(found, RayActorError):
                raise found
            return found
        return [self.get(reference) for reference in references]

    def call(self, number: int, method: str, arguments: Iterable[Any], returns: int) -> Any:
        """Call a worker. As in Ray, a reference that is an argument itself arrives as its object."""
        if method == "__ray_ready__":
            return self.put(True)
        if number not in self._workers:
            return self._failed(ActorDiedError(), returns)
        here = [self.get(a) if isinstance(a, Reference) else pickle.loads(pickle.dumps(a)) for a in arguments]
        try:
            answer = getattr(self._workers[number], method)(*here)
        except ProcessEndsError:
            del self._workers[number]
            return self._failed(ActorDiedError(), returns)
        except (UserError, DivergenceError, EnvironmentFaultError, RayActorError) as error:  # a bug fails the test here
            return self._failed(RayTaskError(method, str(error), error), returns)
        return self.put(answer) if returns == 1 else [self.put(part) for part in answer]

    def _failed(self, error: Exception, returns: int) -> Any:
        return self.put(error) if returns == 1 else [self.put(error) for _ in range(returns)]


HERE: list[RayInProcess] = []  # the one of the present test


@dataclass(frozen=True)
class Handle:
    """A worker's handle, which may be sent to other workers."""

    number: int

    def __getattr__(self, method: str) -> Method:
        if method.startswith("__") and method != "__ray_ready__":
            raise AttributeError(method)
        return Method(self.number, method)


@dataclass(frozen=True)
class Method:
    number: int
    name: str
    returns: int = 1

    def options(self, num_returns: int) -> Method:
        return Method(self.number, self.name, num_returns)

    def remote(self, *arguments: Any) -> Any:
        return HERE[0].call(self.number, self.name, arguments, self.returns)
