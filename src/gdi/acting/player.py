"""Action selection, shared by actor, evaluator and agent: observations go in, and actions come out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gdi import policy
from gdi.algorithms import Algorithm
from gdi.envs.base import EnvSpec
from gdi.errors import UserError
from gdi.networks import AgentNetwork, FrameHistory, Seen
from gdi.types import Array, Window

CPU = torch.device("cpu")


class Observed(NamedTuple):
    """The state of N environments before a step, each array [N, ...]."""

    obs: Array  # the newest frame
    episode_start: Array
    previous_action: Array
    previous_reward: Array
    index: Array  # type: ignore[assignment]  # float32, λ of the episode
    vector: Array  # float32, beside an image
    action_mask: Array  # bool, the valid actions


class Acted(NamedTuple):
    """The chosen actions and their probabilities, each [N]."""

    action: Array
    prob: Array  # μ(a|s)
    notes: dict[str, Array]  # of the algorithm, by name, each [N]


class Player:
    """The policy (π_{θ_λ}) in N environments, with their frame history and recurrent state."""

    def __init__(
        self,
        algorithm: Algorithm,
        network: AgentNetwork,
        num_envs: int,
        spec: EnvSpec,
        device: torch.device = CPU,
        *,
        greedy: bool = False,
    ) -> None:
        """``greedy``: play the most probable action instead of drawing one."""
        self._algorithm = algorithm
        self.network = network.to(device).eval()
        self.theta: dict[str, Tensor] = self.network.state_dict()  # the same tensors by name
        self._num_envs = num_envs
        self._greedy = greedy
        self._device = device
        self.history = FrameHistory(num_envs, spec.frame_shape, spec.observation_dtype, spec.frame_stack)
        self.begin()

    _head: Any
    _seen: Seen
    _probabilities: Tensor

    def begin(self) -> None:
        """Reset the recurrent state, because all environments are at the first step of an episode."""
        self.state: Tensor = self.network.initial_state(self._num_envs).to(self._device)

    def load_state(self, state: Tensor) -> None:
        self.state = state.to(self._device)

    def act(self, observed: Observed, generator: torch.Generator) -> Acted:
        """Draw an action per environment and advance the frame history and the recurrent state.

        a ~ π_{θ_λ}(·|s). Return the actions and their probabilities μ(a|s), each [N].
        """
        stacked = self.history.observe(observed.obs, observed.episode_start)
        with torch.inference_mode():
            head, seen, self.state = self._forward(observed._replace(obs=stacked))
            probabilities = self._algorithm.log_probs(head, seen)[0].exp()
            if observed.action_mask.shape[1] and probabilities[~seen.action_mask[0]].any():
                raise UserError(
                    f"{type(self._algorithm).__name__} gives an invalid action a probability above 0: its log_probs "
                    "must be -inf where seen.action_mask is false."
                )
            action = probabilities.argmax(-1) if self._greedy else policy.sample(probabilities, generator)
            taken = probabilities.gather(1, action.unsqueeze(1)).squeeze(1)
            notes = self._notes(head)
        self._head, self._seen, self._probabilities = head, seen, probabilities
        return Acted(action.numpy(), taken.numpy(), notes)

    def value(self) -> Array:
        """Return V of the states of the latest step, [N]; NaN if the algorithm has no V."""
        value = self._algorithm.value(self._head, self._seen)
        return np.full(self._num_envs, np.nan, np.float32) if value is None else value[0].numpy()

    def entropy(self) -> Array:
        """Return the entropy of π_{θ_λ}(·|s) at the latest step, [N], in nats."""
        return policy.entropy(self._probabilities.log()).numpy()

    def peek(self, observed: Observed) -> dict[str, Array]:
        """Take the algorithm's notes of a step that is not acted yet. Nothing advances, and nothing is drawn."""
        stacked = self.history.preview(observed.obs, observed.episode_start)
        with torch.inference_mode():
            head, _, _ = self._forward(observed._replace(obs=stacked))
            return self._notes(head)

    def annotate(self, window: Window) -> dict[str, Array]:
        """Return the algorithm's extras of a finished window."""
        return self._algorithm.annotate(window)

    def _forward(self, observed: Observed) -> tuple[Any, Seen, Tensor]:
        """Return the head on the CPU, what it saw, and the new recurrent state."""
        seen = Seen(*[torch.from_numpy(x[None]) for x in observed])
        if self._device == CPU:
            output = self.network(seen, self.state)
            return output.head, seen, output.state
        output = self.network(Seen(*(x.to(self._device) for x in seen)), self.state)
        # The policy is a few numbers per environment: drawn on the CPU, from the caller's own generator.
        return type(output.head)(*(field.cpu() for field in output.head)), seen, output.state

    def _notes(self, head: Any) -> dict[str, Array]:
        return {name: note[0].numpy() for name, note in self._algorithm.record(head).items()}
