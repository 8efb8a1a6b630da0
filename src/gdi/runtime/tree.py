"""The checkpoint layout of a system, shared by all runtimes, so that either can resume a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gdi.errors import DivergenceError, EnvironmentFaultError, UserError
from gdi.runtime.exceptions import StallError
from gdi.types import State


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Raise UserError, with one line, if a checkpoint does not fit the system that the config describes."""
    try:
        yield
    except (DivergenceError, EnvironmentFaultError, StallError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        said = " ".join(str(error).split())[:160]
        raise UserError(
            f"the checkpoint of {what} does not fit its config.json: was config.json changed after training? "
            f"({type(error).__name__}: {said})"
        ) from error


def check_windows(collector: State, window_steps: int) -> None:
    """Raise ValueError if the stored sequences of an exact replay are not as long as the config says."""
    for window in collector.get("windows", {}).values():
        steps = len(window["arrays"]["action"]) if "arrays" in window else window_steps
        if steps != window_steps:
            raise ValueError(f"a sequence has {steps} steps, not {window_steps}")


@dataclass(frozen=True)
class SystemState:
    """The saved states of a system's components."""

    actors: dict[int, State]
    collector: State
    learner: State
    parameters: State
    controller: State
    controller_slots: int
    steps: int
    episodes: int
    envs_per_actor: int | None = None  # None if one actor has all environments

    def tree(self) -> State:
        more = {str(number): state for number, state in self.actors.items() if number}
        return {
            **({"actor": self.actors[0]} if 0 in self.actors else {}),  # missing while actor 0 is being replaced
            **({} if self.envs_per_actor is None else {"more_actors": more, "envs_per_actor": self.envs_per_actor}),
            "collector": self.collector,
            "learner": self.learner,
            "parameters": self.parameters,
            "controllers": controllers_tree(self.controller, self.controller_slots),
            "steps": self.steps,
            "episodes": self.episodes,
        }


def controllers_tree(controller: State, slots: int) -> State:
    """Return the controller's state by slot, even if one slot serves all environments."""
    return {"0": controller} if slots == 1 else controller


def controller_state(tree: State, slots: int) -> State:
    """Invert ``controllers_tree`` for a controller with ``slots`` slots."""
    return tree["0"] if slots == 1 else tree


def resumable_actor_states(state: State, num_envs: int) -> dict[int, State]:
    """Return the states in a checkpoint from which actors with ``num_envs`` environments can continue.

    The keys are actor numbers. If the saved actors had another size, their episodes cannot continue, and new ones
    start.
    """
    kept = {int(number): actor for number, actor in state.get("more_actors", {}).items()}
    if "actor" in state:
        kept[0] = state["actor"]
    if int(state.get("envs_per_actor", num_envs)) == num_envs:
        return kept
    return {number: {"common": actor["common"]} for number, actor in kept.items()}
