"""The agent's network: A_θ and V_θ for one family of variables (GDI-I3) or two (GDI-H3)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gdi.config import Config
from gdi.networks.core import LstmCore
from gdi.networks.dynamics import Dynamics
from gdi.networks.precision import arithmetic
from gdi.networks.torsos import make_torso
from gdi.rewards import SHAPES


class AgentInput(NamedTuple):
    """What the agent sees over a stretch of time; each [T, B, ...]."""

    obs: Tensor
    episode_start: Tensor
    previous_action: Tensor
    previous_reward: Tensor


class AgentOutput(NamedTuple):
    """What the network says of it; F is the number of families."""

    advantage: Tensor  # [T, B, F, A]
    value: Tensor  # [T, B, F]
    features: list[Tensor]  # per encoder, [T, B, D]: the torso's φ, before the core
    state: Tensor  # [B, encoders, state size], after the last step


class Encoder(nn.Module):
    """Torso and, with ``lstm_units`` > 0, a core that also sees the previous action and shaped reward."""

    def __init__(self, config: Config, observation_shape: tuple[int, ...], num_actions: int, family: int) -> None:
        super().__init__()
        network = config.network
        self.num_actions = num_actions
        self.reward_shape = SHAPES[network.reward_shapes[family]]
        self.reward_scale = network.reward_scales[family]
        self.precision = config.run.precision
        self.torso = make_torso(network.torso, observation_shape, network.hidden_units)
        self.core: LstmCore | None = None
        self.out_features = network.hidden_units
        if network.lstm_units:
            self.core = LstmCore(network.hidden_units + num_actions + 1, network.lstm_units)
            self.out_features = network.lstm_units

    @property
    def state_size(self) -> int:
        return 2 * self.core.units if self.core is not None else 0

    def forward(self, x: AgentInput, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """-> (output [T, B, out], torso features [T, B, D], new state [B, state size])."""
        with arithmetic(self.precision, x.obs.device):
            # One call for all T · B observations, then back to time-major.
            features: Tensor = self.torso(x.obs.flatten(0, 1)).unflatten(0, x.obs.shape[:2])
        features = features.float()
        if self.core is None:
            return features, features, state
        inside = (~x.episode_start).unsqueeze(-1)  # an episode's first step has no previous action or reward
        action = F.one_hot(x.previous_action, self.num_actions) * inside
        reward = (self.reward_scale * self.reward_shape(x.previous_reward)).unsqueeze(-1) * inside
        output, state = self.core(torch.cat([features, action, reward], dim=-1), x.episode_start, state)
        return output, features, state


class Heads(nn.Module):
    """A [.., actions] and V [..], one linear layer each."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.advantage = nn.Linear(features, num_actions)
        self.value = nn.Linear(features, 1)
        # Equal advantages at the start: the first policies are uniform whatever the temperature.
        nn.init.zeros_(self.advantage.weight)
        nn.init.zeros_(self.advantage.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.advantage(x), self.value(x).squeeze(-1)


class AgentNetwork(nn.Module):
    """F families. Each has its own encoder, or (``shared_torso``) all share one; each has its own heads."""

    def __init__(self, config: Config, observation_shape: tuple[int, ...], num_actions: int) -> None:
        super().__init__()
        network, learner = config.network, config.learner
        self.families = int(network.families)
        num_encoders = 1 if network.shared_torso else self.families
        encoders = [Encoder(config, observation_shape, num_actions, family) for family in range(num_encoders)]
        self.state_size = encoders[0].state_size
        self.encoders = nn.ModuleList(encoders)
        self.heads = nn.ModuleList(Heads(encoders[0].out_features, num_actions) for _ in range(self.families))
        self.dynamics: nn.ModuleList | None = None
        if learner.forward_dynamics_scale or learner.inverse_dynamics_scale:
            self.dynamics = nn.ModuleList(Dynamics(network.hidden_units, num_actions) for _ in self.encoders)

    def tasks(self) -> list[Dynamics]:
        """The auxiliary tasks, one per encoder; none when both are switched off."""
        return [task for task in self.dynamics or () if isinstance(task, Dynamics)]

    def initial_state(self, batch: int) -> Tensor:
        """[B, encoders, state size], zeros."""
        return torch.zeros(batch, len(self.encoders), self.state_size)

    def forward(self, x: AgentInput, state: Tensor) -> AgentOutput:
        encoded = [encoder(x, state[:, i]) for i, encoder in enumerate(self.encoders)]
        outputs = [output for output, _, _ in encoded]
        if len(outputs) < self.families:
            outputs = outputs * self.families
        by_family = [head(output) for head, output in zip(self.heads, outputs, strict=True)]
        return AgentOutput(
            advantage=torch.stack([advantage for advantage, _ in by_family], dim=-2),
            value=torch.stack([value for _, value in by_family], dim=-1),
            features=[features for _, features, _ in encoded],
            state=torch.stack([new_state for _, _, new_state in encoded], dim=1),
        )


def make_network(config: Config, observation_shape: tuple[int, ...], num_actions: int, seed: int) -> AgentNetwork:
    """A network initialised from the seed, leaving torch's global generator as it found it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AgentNetwork(config, observation_shape, num_actions)
    if config.run.compile:
        for encoder in network.encoders.children():
            assert isinstance(encoder, Encoder)
            encoder.torso.compile()  # in place: the parameters keep their names, and so do checkpoints
    return network
