"""Action selection, shared by actor, evaluator and agent: observations go in, and actions come out."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gdi import policy
from gdi.algorithms import Algorithm
from gdi.envs.base import EnvSpec
from gdi.networks import AgentNetwork, FrameHistory, Seen
from gdi.types import Array

CPU = torch.device("cpu")


class Observed(NamedTuple):
    """The state of N environments before a step, each array [N, ...]."""

    obs: Array  # the newest frame
    episode_start: Array
    previous_action: Array
    previous_reward: Array
    index: Array  # type: ignore[assignment]  # float32, λ of the episode


class Acted(NamedTuple):
    """The chosen actions and their probabilities, each [N]."""

    action: Array
    prob: Array  # μ(a|s)


class Player:
    """The policy (π_{θ_λ}) in N environments, with their frame history and recurrent state."""

    def __init__(
        self,
        algorithm: Algorithm,
        network: AgentNetwork,
        num_envs: int,
        spec: EnvSpec,
        device: torch.device = CPU,
    ) -> None:
        self._algorithm = algorithm
        self.network = network.to(device).eval()
        self._num_envs = num_envs
        self._device = device
        self.history = FrameHistory(num_envs, spec.frame_shape, spec.observation_dtype, spec.frame_stack)
        self.begin()

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
            seen = Seen(*(torch.from_numpy(x).unsqueeze(0) for x in observed._replace(obs=stacked)))
            output = self.network(Seen(*(x.to(self._device) for x in seen)), self.state)
            self.state = output.state
            # Actions are drawn on the CPU, because the caller's generator is there and the policy is small.
            head = type(output.head)(*(field.cpu() for field in output.head))
            probabilities = self._algorithm.log_probs(head, seen)[0].exp()
            action = policy.sample(probabilities, generator)
            taken = probabilities.gather(1, action.unsqueeze(1)).squeeze(1)
        return Acted(action.numpy(), taken.numpy())
