"""Torsos: one observation to one feature vector, [M, *observation] -> [M, hidden units].

Images arrive as the environments store them, [height, width, channel]; viewing them channel-first costs nothing and is
exactly PyTorch's channels-last memory layout, the fast one for convolutions on a CPU.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gdi.errors import UserError


def to_float(obs: Tensor) -> Tensor:
    """Numbers as float, bytes scaled to [0, 1]."""
    return obs.float() / 255.0 if obs.dtype == torch.uint8 else obs.float()


def image_to_float(obs: Tensor) -> Tensor:
    """[M, H, W, C] -> [M, C, H, W] float."""
    return to_float(obs).permute(0, 3, 1, 2)


class MlpTorso(nn.Module):
    """Two dense layers with tanh, for vector observations."""

    def __init__(self, observation_shape: tuple[int, ...], hidden_units: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(math.prod(observation_shape), hidden_units),
            nn.Tanh(),
            nn.Linear(hidden_units, hidden_units),
            nn.Tanh(),
        )

    def forward(self, obs: Tensor) -> Tensor:
        features: Tensor = self.layers(to_float(obs).flatten(1))
        return features


class ConvTorso(nn.Module):
    """Convolutions, then one dense layer with ReLU."""

    def __init__(self, convolutions: nn.Module, observation_shape: tuple[int, ...], hidden_units: int) -> None:
        super().__init__()
        self.convolutions = convolutions
        with torch.no_grad():
            probe = convolutions(image_to_float(torch.zeros(1, *observation_shape)))
        self.dense = nn.Linear(probe.numel(), hidden_units)

    def forward(self, obs: Tensor) -> Tensor:
        # Channel-last again before flattening: in this memory layout that is a view, and the usual order a copy.
        maps = self.convolutions(image_to_float(obs)).permute(0, 2, 3, 1)
        return torch.relu(self.dense(maps.flatten(1)))


def minatar_convolutions(channels: int) -> nn.Module:
    """One 3x3 convolution of 16 filters, as in the MinAtar paper's networks."""
    return nn.Sequential(nn.Conv2d(channels, 16, 3), nn.ReLU(inplace=True))


def nature_convolutions(channels: int) -> nn.Module:
    """The DQN of Mnih et al. 2015: 32 8x8/4, 64 4x4/2, 64 3x3/1."""
    return nn.Sequential(
        nn.Conv2d(channels, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU()
    )


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        residual: Tensor = self.second(torch.relu(self.first(torch.relu(x))))
        return x + residual


def impala_deep_convolutions(channels: int) -> nn.Module:
    """The deep network of IMPALA (Espeholt et al. 2018): three sections of 16, 32, 32 channels, 15 convolutions."""
    sections: list[nn.Module] = []
    for width in (16, 32, 32):
        sections += [
            nn.Conv2d(channels, width, 3, padding=1),
            nn.MaxPool2d(3, 2, padding=1),
            ResidualBlock(width),
            ResidualBlock(width),
        ]
        channels = width
    return nn.Sequential(*sections, nn.ReLU())


CONVOLUTIONS = {
    "minatar": minatar_convolutions,
    "nature": nature_convolutions,
    "impala-deep": impala_deep_convolutions,
}
# The smallest image each one can take: below this a convolution has nothing left to slide over.
SMALLEST_SIDE = {"minatar": 3, "nature": 36, "impala-deep": 8}


def resolve_torso(torso: str, observation_shape: tuple[int, ...]) -> str:
    """The torso that ``auto`` means for this observation; a torso that cannot take it is a user error."""
    is_image = len(observation_shape) == 3
    side = min(observation_shape[:2]) if is_image else 0
    if torso == "auto":
        if not is_image:
            return "mlp"
        return "nature" if side >= SMALLEST_SIDE["nature"] else "minatar"
    if torso != "mlp" and side < SMALLEST_SIDE[torso]:
        raise UserError(
            f"--network.torso {torso} needs images of at least {SMALLEST_SIDE[torso]} pixels a side, and observations "
            f"here have shape {observation_shape}: use --network.torso auto."
        )
    return torso


def make_torso(torso: str, observation_shape: tuple[int, ...], hidden_units: int) -> nn.Module:
    kind = resolve_torso(torso, observation_shape)
    if kind == "mlp":
        return MlpTorso(observation_shape, hidden_units)
    convolutions = CONVOLUTIONS[kind](observation_shape[-1]).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return ConvTorso(convolutions, observation_shape, hidden_units)
