"""The agent's network: encoders for one or two families of variables, and the algorithm's heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gdi.config import Config
from gdi.networks.beside import Beside, make_normalizer
from gdi.networks.core import LstmCore
from gdi.networks.precision import arithmetic
from gdi.networks.torsos import make_torso


class Seen(NamedTuple):
    """The agent's input over T steps, each tensor [T, B, ...]."""

    obs: Tensor
    episode_start: Tensor
    previous_action: Tensor
    previous_reward: Tensor
    index: Tensor  # type: ignore[assignment]  # [T, B, components of λ], of the episode that obs[t] belongs to
    vector: Tensor  # [T, B, V], beside an image; V = 0 without one
    action_mask: Tensor  # [T, B, A] bool, the valid actions; [T, B, 0] if all are


class AgentOutput(NamedTuple):
    """The network's output, where F is the number of families."""

    head: Any  # the algorithm's NamedTuple, each field [T, B, F, ...]
    features: list[Tensor]  # per encoder, [T, B, D]: the torso's φ, before the core
    state: Tensor  # [B, encoders, state size], after the last step


class Architecture(Protocol):
    """The parts of the network that an algorithm defines."""

    dense_as_convolution: bool
    """Whether the torso may compute its dense layer as a convolution, which is faster and rounds differently."""

    def heads(self, family: int, features: int, num_actions: int) -> nn.Module:
        """Return the layers that follow an encoder; they output a NamedTuple of tensors, each [T, B, ...]."""
        ...

    def modules(self, encoders: int, features: int, num_actions: int) -> dict[str, nn.Module]:
        """Return further trained layers by name, such as auxiliary tasks on the torso's features."""
        ...

    def core_reward(self, family: int, reward: Tensor) -> Tensor:
        """Return the previous reward as the recurrent core of this family receives it."""
        ...

    def initialize_torso(self, torso: nn.Module) -> None:
        """Give the torso's layers other initial values than its own."""
        ...


class Encoder(nn.Module):
    """A torso and, with ``lstm_units`` > 0, a core that also receives the previous action and reward."""

    def __init__(
        self,
        config: Config,
        observation_shape: tuple[int, ...],
        num_actions: int,
        core_reward: Callable[[Tensor], Tensor],
        vector_width: int,
        dense_as_convolution: bool,
    ) -> None:
        super().__init__()
        network = config.network
        self.num_actions = num_actions
        self.core_reward = core_reward
        self.precision = config.run.precision
        self.torso = make_torso(
            network.torso,
            observation_shape,
            network.hidden_units,
            network.activation,
            dense_as_convolution=dense_as_convolution,
        )
        self.beside = Beside(network.hidden_units, vector_width) if vector_width else None
        self.normalizer = make_normalizer(config, observation_shape)
        self.core: LstmCore | None = None
        self.out_features = network.hidden_units
        if network.lstm_units:
            self.core = LstmCore(network.hidden_units + num_actions + 1, network.lstm_units)
            self.out_features = network.lstm_units

    @property
    def state_size(self) -> int:
        return 2 * self.core.units if self.core is not None else 0

    def forward(self, x: Seen, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the output [T, B, out], the torso's features [T, B, D] and the new state [B, state size]."""
        if self.normalizer is not None:
            x = self.normalizer(x)
        with arithmetic(self.precision, x.obs.device):
            # The torso encodes all T · B observations in one call.
            features: Tensor = self.torso(x.obs.flatten(0, 1)).view(*x.obs.shape[:2], -1)
        features = features.float()
        if self.beside is not None:
            features = self.beside(features, x.vector)
        if self.core is None:
            return features, features, state
        inside = (~x.episode_start).unsqueeze(-1)  # the first step of an episode has no previous action or reward
        action = F.one_hot(x.previous_action, self.num_actions) * inside
        reward = self.core_reward(x.previous_reward).unsqueeze(-1) * inside
        output, state = self.core(torch.cat([features, action, reward], dim=-1), x.episode_start, state)
        return output, features, state


class AgentNetwork(nn.Module):
    """A network of F families, each with its own heads and its own encoder.

    With ``shared_torso`` all families share one encoder.
    """

    def __init__(
        self,
        config: Config,
        architecture: Architecture,
        observation_shape: tuple[int, ...],
        num_actions: int,
        vector_width: int = 0,
    ) -> None:
        super().__init__()
        network = config.network
        self.families = int(network.families)
        num_encoders = 1 if network.shared_torso else self.families

        def core_reward(family: int) -> Callable[[Tensor], Tensor]:
            return lambda reward: architecture.core_reward(family, reward)

        # Checkpoints and seeded runs depend on this order of construction, which sets the order of the parameters and
        # of their random initial values.
        encoders = [
            Encoder(
                config, observation_shape, num_actions, core_reward(i), vector_width, architecture.dense_as_convolution
            )
            for i in range(num_encoders)
        ]
        for encoder in encoders:
            architecture.initialize_torso(encoder.torso)
        self.state_size = encoders[0].state_size
        self.encoders = nn.ModuleList(encoders)
        self.heads = nn.ModuleList(
            architecture.heads(family, encoders[0].out_features, num_actions) for family in range(self.families)
        )
        for name, module in architecture.modules(num_encoders, network.hidden_units, num_actions).items():
            self.add_module(name, module)

    def initial_state(self, batch: int) -> Tensor:
        """Return a zero state, [B, encoders, state size]."""
        return torch.zeros(batch, len(self.encoders), self.state_size)

    def observe(self, seen: Seen, mask: Tensor) -> None:
        """Let the normalizers take in the masked steps of a batch: mask [T, B]."""
        for encoder in self.encoders.children():
            assert isinstance(encoder, Encoder)
            if encoder.normalizer is not None:
                encoder.normalizer.observe(seen, mask)

    def forward(self, x: Seen, state: Tensor) -> AgentOutput:
        encoded = [encoder(x, state[:, i]) for i, encoder in enumerate(self.encoders)]
        outputs = [output for output, _, _ in encoded]
        if len(outputs) < self.families:
            outputs = outputs * self.families
        by_family = [head(output) for head, output in zip(self.heads, outputs, strict=True)]
        head = type(by_family[0])(*(_stack(field, 2) for field in zip(*by_family, strict=True)))
        return AgentOutput(
            head=head,
            features=[features for _, features, _ in encoded],
            state=_stack([new_state for _, _, new_state in encoded], 1),
        )


def _stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Stack tensors. One alone is a view, which costs no copy."""
    return torch.stack(list(tensors), dim) if len(tensors) > 1 else tensors[0].unsqueeze(dim)


def copy_parameters(own: Mapping[str, Tensor], params: Mapping[str, Tensor]) -> None:
    """Overwrite a network's parameters and buffers by those of an equal one, at a fraction of the usual cost.

    ``own`` is its ``state_dict``. A caller may keep it, because it holds the tensors of the network and not copies.
    """
    if own.keys() != params.keys():
        raise KeyError(f"parameters differ: {sorted(own.keys() ^ params.keys())}")
    with torch.no_grad():
        torch._foreach_copy_(list(own.values()), [params[name] for name in own])


def make_network(
    config: Config,
    architecture: Architecture,
    observation_shape: tuple[int, ...],
    num_actions: int,
    seed: int,
    vector_width: int = 0,
) -> AgentNetwork:
    """Make a network initialized from the seed, without a change to torch's global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AgentNetwork(config, architecture, observation_shape, num_actions, vector_width)
    if config.run.compile:
        for encoder in network.encoders.children():
            assert isinstance(encoder, Encoder)
            encoder.torso.compile()  # compiling in place keeps the parameter names that checkpoints use
    return network
