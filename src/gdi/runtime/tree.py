"""The checkpoint tree of a system: its names, once for every runtime, so that a run may be continued by either."""

from __future__ import annotations

from dataclasses import dataclass

from gdi.types import State


@dataclass(frozen=True)
class SystemState:
    """What the parts of a system say of themselves."""

    actors: dict[int, State]
    collector: State
    learner: State
    parameters: State
    controller: State
    controller_slots: int
    steps: int
    episodes: int
    envs_per_actor: int | None = None  # None: one actor has all environments

    def tree(self) -> State:
        more = {str(number): state for number, state in self.actors.items() if number}
        return {
            **({"actor": self.actors[0]} if 0 in self.actors else {}),  # missing if it is just being replaced
            **({} if self.envs_per_actor is None else {"more_actors": more, "envs_per_actor": self.envs_per_actor}),
            "collector": self.collector,
            "learner": self.learner,
            "parameters": self.parameters,
            "controllers": controllers_tree(self.controller, self.controller_slots),
            "steps": self.steps,
            "episodes": self.episodes,
        }


def controllers_tree(controller: State, slots: int) -> State:
    """By slot, also where there is one for all environments."""
    return {"0": controller} if slots == 1 else controller


def controller_state(tree: State, slots: int) -> State:
    """The inverse of ``controllers_tree``, for a controller that has so many slots now."""
    return tree["0"] if slots == 1 else tree


def actor_states(state: State, num_envs: int) -> dict[int, State]:
    """By its number, what each actor of now, with ``num_envs`` environments, can continue from in a checkpoint.

    The run may have been saved with actors of another size; their episodes cannot go on, and new ones begin.
    """
    kept = {int(number): actor for number, actor in state.get("more_actors", {}).items()}
    if "actor" in state:
        kept[0] = state["actor"]
    if int(state.get("envs_per_actor", num_envs)) == num_envs:
        return kept
    return {number: {"common": actor["common"]} for number, actor in kept.items()}
