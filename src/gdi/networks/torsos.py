"""Torsos: one observation to one feature vector, [M, *observation] -> [M, hidden units].

Images arrive as the environments store them, [height, width, channel]; viewing them channel-first costs nothing and is
exactly PyTorch's channels-last memory layout, the fast one for convolutions on a CPU.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gdi.errors import UserError
from gdi.networks.precision import arithmetic_dtype


def to_float(obs: Tensor) -> Tensor:
    """Numbers as float, bytes scaled to [0, 1]."""
    return obs.float() / 255.0 if obs.dtype == torch.uint8 else obs.float()


class ToImages(nn.Module):
    """[M, H, W, C] -> [M, C, H, W] float."""

    def forward(self, obs: Tensor) -> Tensor:
        return to_float(obs).permute(0, 3, 1, 2)


def background(obs: Tensor) -> Tensor:
    """The median of each channel of each image, [M, H, W, C] -> [M, C].

    Where one gray fills most of the picture it is exactly that one (Pong 87 of 255, Breakout 0), and the empty field
    comes out as 0; with the mean it does not, and Breakout was learned slowly. Every sixth pixel of every sixth row: a
    median of all of them would be much of a convolution's cost.
    """
    return obs[:, ::6, ::6].flatten(1, 2).median(1).values


class FirstConvolution(nn.Conv2d):
    """The 8x8 convolution at stride 4 with which Atari networks begin, taking images as they are stored.

    Bytes are not scaled to [0, 1] pixel by pixel: conv(x / 255, w) = conv(x, w / 255). And an 8x8 kernel is a 2x2
    kernel over blocks of 4x4 pixels: with each block's pixels as channels (16 per frame instead of 1) the sums are the
    same, and a CPU runs them, conversion of the bytes included, in half the time.

    Every channel is seen minus its background. Otherwise, where the field is bright, the weights of a filter, each
    moved a little and the same way by an update, move its output 87 times as much: in Pong every filter ended below 0,
    and behind their ReLU the network was blind.
    """

    BLOCK = 4

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__(channels, filters, 2 * self.BLOCK, self.BLOCK)

    def forward(self, obs: Tensor) -> Tensor:
        """[M, H, W, C] -> [M, filters, H / 4 - 1, W / 4 - 1]."""
        return self.convolve(self.prepare(obs))

    def prepare(self, obs: Tensor) -> Tensor:
        """Images minus their background: bytes [M, H, W, C] -> [M, 16 C, H / 4, W / 4], others just channel-first.

        The difference of two bytes is exact in bfloat16, too. Taken after the convolution it would be that of two
        rounded numbers, each much larger than what a ball on the field adds to them.
        """
        count, height, width, channels = obs.shape
        if obs.dtype != torch.uint8 or height % self.BLOCK or width % self.BLOCK:
            images = to_float(obs)
            return (images - background(images)[:, None, None]).permute(0, 3, 1, 2)
        shape = (count, channels, height // self.BLOCK, self.BLOCK, width // self.BLOCK)
        # The four bytes of a block's row move as one 32-bit word.
        words = obs.permute(0, 3, 1, 2).flatten().view(torch.int32).view(shape)
        blocks = words.permute(0, 2, 4, 1, 3).contiguous().view(torch.uint8).flatten(3)  # [M, rows, columns, 16 C]
        empty = background(obs).repeat_interleave(self.BLOCK**2, dim=1)[:, None, None]
        pixels = blocks.short().sub_(empty.short()).to(arithmetic_dtype(obs.device))
        return pixels.permute(0, 3, 1, 2)

    def convolve(self, prepared: Tensor) -> Tensor:
        """The convolution of prepared images."""
        filters, channels = self.weight.shape[:2]
        if prepared.shape[1] == channels:
            return F.conv2d(prepared, self.weight, self.bias, self.BLOCK)
        weight = self.weight.reshape(filters, channels, 2, self.BLOCK, 2, self.BLOCK)
        weight = weight.permute(0, 2, 4, 1, 3, 5).flatten(3).permute(0, 3, 1, 2)  # [F, 16 C, 2, 2], channels-last
        return F.conv2d(prepared, weight / 255.0, self.bias)


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
    """Convolutions of images [M, H, W, C], then one dense layer with ReLU."""

    def __init__(self, convolutions: nn.Module, observation_shape: tuple[int, ...], hidden_units: int) -> None:
        super().__init__()
        self.convolutions = convolutions
        with torch.no_grad():
            probe = convolutions(torch.zeros(1, *observation_shape))
        self.dense = nn.Linear(probe.numel(), hidden_units)

    def forward(self, obs: Tensor) -> Tensor:
        # Channel-last again before flattening: in this memory layout that is a view, and the usual order a copy.
        maps = self.convolutions(obs).permute(0, 2, 3, 1)
        return torch.relu(self.dense(maps.flatten(1)))


def minatar_convolutions(channels: int) -> nn.Module:
    """One 3x3 convolution of 16 filters, as in the MinAtar paper's networks."""
    return nn.Sequential(ToImages(), nn.Conv2d(channels, 16, 3), nn.ReLU(inplace=True))


def nature_convolutions(channels: int) -> nn.Module:
    """The DQN of Mnih et al. 2015: 32 8x8/4, 64 4x4/2, 64 3x3/1."""
    return nn.Sequential(
        FirstConvolution(channels, 32),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(inplace=True),
    )


def impala_shallow_convolutions(channels: int) -> nn.Module:
    """The shallow network of IMPALA, which is that of A3C (Mnih et al. 2016): 16 8x8/4, 32 4x4/2."""
    return nn.Sequential(
        FirstConvolution(channels, 16), nn.ReLU(inplace=True), nn.Conv2d(16, 32, 4, 2), nn.ReLU(inplace=True)
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
    sections: list[nn.Module] = [ToImages()]
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
    "impala-shallow": impala_shallow_convolutions,
    "impala-deep": impala_deep_convolutions,
}
DEEP_WITHOUT_SHORTCUTS = ("nature", "impala-shallow")
# The smallest image each one can take: below this a convolution has nothing left to slide over.
SMALLEST_SIDE = {"minatar": 3, "nature": 36, "impala-shallow": 20, "impala-deep": 8}


def resolve_torso(torso: str, observation_shape: tuple[int, ...]) -> str:
    """The torso that ``auto`` means for this observation; a torso that cannot take it is a user error."""
    is_image = len(observation_shape) == 3
    side = min(observation_shape[:2]) if is_image else 0
    if torso == "auto":
        if side < SMALLEST_SIDE["minatar"]:  # a vector, or too small to slide over
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
    convolutions = CONVOLUTIONS[kind](observation_shape[-1])
    made = ConvTorso(convolutions, observation_shape, hidden_units)
    if kind in DEEP_WITHOUT_SHORTCUTS:
        keep_scale(made)
    convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return made


def keep_scale(torso: nn.Module) -> None:
    """Orthogonal weights with gain √2 and no biases: each layer with its ReLU passes on as much as it gets.

    PyTorch's initial weights pass on √6 times less. Two frames of a game differ little, and three such layers later by
    so little that the first updates see only what all frames share.
    """
    for layer in torso.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.orthogonal_(layer.weight, math.sqrt(2.0))
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
