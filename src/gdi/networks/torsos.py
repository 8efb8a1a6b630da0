"""Torsos: they encode an observation as a feature vector, [M, *observation] -> [M, hidden units].

Images arrive as the environments store them, [height, width, channel]. A channel-first view of them costs nothing. It
has PyTorch's channels-last memory layout, which is the fast one for convolutions on a CPU.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gdi.errors import UserError
from gdi.networks.precision import torso_dtype


def to_float(obs: Tensor) -> Tensor:
    """Convert numbers to float, and scale bytes to [0, 1]."""
    return obs.float() / 255.0 if obs.dtype == torch.uint8 else obs.float()


class ChannelsFirst(nn.Module):
    """A conversion from [M, H, W, C] to [M, C, H, W] float."""

    def forward(self, obs: Tensor) -> Tensor:
        return to_float(obs).permute(0, 3, 1, 2)


def background(obs: Tensor) -> Tensor:
    """Return the median of each channel of each image, [M, H, W, C] -> [M, C].

    If one gray level fills most of the image, the median is exactly that level (87 of 255 in Pong, 0 in Breakout).
    Subtracting it maps the empty field to 0. Subtracting the mean does not, and the agent learns Breakout slowly with
    it. Only every sixth pixel of every sixth row counts, because a median of all pixels would cost a large part of a
    convolution.
    """
    return obs[:, ::6, ::6].flatten(1, 2).median(1).values


class FirstConvolution(nn.Conv2d):
    """The first convolution of Atari networks, 8x8 at stride 4, on images as they are stored.

    The weights are scaled instead of the pixels, because conv(x / 255, w) = conv(x, w / 255). An 8x8 kernel equals a
    2x2 kernel over blocks of 4x4 pixels. With each block's pixels as channels (16 per frame instead of 1), the sums are
    the same. A CPU computes them in half the time, including the conversion of the bytes.

    The background is subtracted from every channel. Otherwise, on a bright field, an update that nudges all weights of
    a filter the same way moves its output 87 times as much. In Pong every filter then ends up below 0, and behind the
    ReLU the network is blind.
    """

    BLOCK = 4

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__(channels, filters, 2 * self.BLOCK, self.BLOCK)

    def forward(self, obs: Tensor) -> Tensor:
        """Convolve images, [M, H, W, C] -> [M, filters, H / 4 - 1, W / 4 - 1]."""
        return self.convolve(self.prepare(obs))

    def prepare(self, obs: Tensor) -> Tensor:
        """Subtract the background and move the channels first, [M, H, W, C] -> [M, 16 C, H / 4, W / 4].

        Images that are not bytes, or whose sides 4 does not divide, become [M, C, H, W]. The difference of two bytes is
        exact even in bfloat16. After the convolution, it would be a difference of two rounded numbers. Each of them is
        much larger than the contribution of a ball on the field.
        """
        count, height, width, channels = obs.shape
        if obs.dtype != torch.uint8 or height % self.BLOCK or width % self.BLOCK:
            images = to_float(obs)
            return (images - background(images)[:, None, None]).permute(0, 3, 1, 2)
        shape = (count, channels, height // self.BLOCK, self.BLOCK, width // self.BLOCK)
        # The four bytes of a block's row move as one 32-bit word, so there are fewer elements to move.
        words = obs.permute(0, 3, 1, 2).flatten().view(torch.int32).view(shape)
        blocks = words.permute(0, 2, 4, 1, 3).contiguous().view(torch.uint8).flatten(3)  # [M, rows, columns, 16 C]
        empty = background(obs).repeat_interleave(self.BLOCK**2, dim=1)[:, None, None]
        pixels = blocks.short().sub_(empty.short()).to(torso_dtype(obs.device))
        return pixels.permute(0, 3, 1, 2)

    def convolve(self, prepared: Tensor) -> Tensor:
        """Convolve prepared images."""
        filters, channels = self.weight.shape[:2]
        if prepared.shape[1] == channels:
            return F.conv2d(prepared, self.weight, self.bias, self.BLOCK)
        weight = self.weight.reshape(filters, channels, 2, self.BLOCK, 2, self.BLOCK)
        weight = weight.permute(0, 2, 4, 1, 3, 5).flatten(3).permute(0, 3, 1, 2)  # [F, 16 C, 2, 2], channels-last
        return F.conv2d(prepared, weight / 255.0, self.bias)


ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


class MlpTorso(nn.Module):
    """Two dense layers for vector observations."""

    def __init__(self, observation_shape: tuple[int, ...], hidden_units: int, activation: str = "tanh") -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(math.prod(observation_shape), hidden_units),
            ACTIVATIONS[activation](),
            nn.Linear(hidden_units, hidden_units),
            ACTIVATIONS[activation](),
        )

    def forward(self, obs: Tensor) -> Tensor:
        features: Tensor = self.layers(to_float(obs).flatten(1))
        return features


# With fewer images, the dense layer is faster as a matrix product than as a convolution.
DENSE_CONVOLUTION_IMAGES = 64


class ConvTorso(nn.Module):
    """Convolutions of images, [M, H, W, C], and one dense layer with ReLU."""

    def __init__(
        self,
        convolutions: nn.Module,
        observation_shape: tuple[int, ...],
        hidden_units: int,
        *,
        dense_as_convolution: bool = False,
    ) -> None:
        """``dense_as_convolution``: compute the dense layer of many images as a convolution over the whole maps.

        On a CPU, PyTorch's matrix product is MKL's, which takes twice as long on AMD's processors as oneDNN, which
        computes the convolutions. The sums are the same but for their rounding.
        """
        super().__init__()
        self.convolutions = convolutions
        self._dense_as_convolution = dense_as_convolution
        with torch.no_grad():
            probe = convolutions(torch.zeros(1, *observation_shape))
        self.dense = nn.Linear(probe.numel(), hidden_units)

    def forward(self, obs: Tensor) -> Tensor:
        # Flatten in channel-last order, which is a view in this memory layout. The usual order would need a copy.
        maps = self.convolutions(obs).permute(0, 2, 3, 1)
        if self._dense_as_convolution and len(maps) >= DENSE_CONVOLUTION_IMAGES:
            kernel = self.dense.weight.view(-1, *maps.shape[1:]).permute(0, 3, 1, 2)
            return torch.relu(F.conv2d(maps.permute(0, 3, 1, 2), kernel, self.dense.bias).flatten(1))
        return torch.relu(self.dense(maps.flatten(1)))


def minatar_convolutions(channels: int) -> nn.Module:
    """Make one 3x3 convolution of 16 filters, as in the networks of the MinAtar paper."""
    return nn.Sequential(ChannelsFirst(), nn.Conv2d(channels, 16, 3), nn.ReLU(inplace=True))


def nature_convolutions(channels: int) -> nn.Module:
    """Make the convolutions of the DQN of Mnih et al. 2015: 32 8x8/4, 64 4x4/2, 64 3x3/1."""
    return nn.Sequential(
        FirstConvolution(channels, 32),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(inplace=True),
    )


def impala_shallow_convolutions(channels: int) -> nn.Module:
    """Make IMPALA's shallow network, which is that of A3C (Mnih et al. 2016): 16 8x8/4, 32 4x4/2."""
    return nn.Sequential(
        FirstConvolution(channels, 16), nn.ReLU(inplace=True), nn.Conv2d(16, 32, 4, 2), nn.ReLU(inplace=True)
    )


class ResidualBlock(nn.Module):
    """A residual block of two convolutions: x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        residual: Tensor = self.second(torch.relu(self.first(torch.relu(x))))
        return x + residual


def impala_deep_convolutions(channels: int) -> nn.Module:
    """Make IMPALA's deep network (Espeholt et al. 2018): 15 convolutions with 16, 32 and 32 channels."""
    sections: list[nn.Module] = [ChannelsFirst()]
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
ORTHOGONAL_INIT_TORSOS = ("nature", "impala-shallow")
# The smallest image of each torso. On a smaller one, the output of a convolution would be empty.
MIN_IMAGE_SIDE = {"minatar": 3, "nature": 36, "impala-shallow": 20, "impala-deep": 8}


def resolve_torso(torso: str, observation_shape: tuple[int, ...]) -> str:
    """Return the torso, with ``auto`` resolved; raise UserError if it cannot encode this observation."""
    is_image = len(observation_shape) == 3
    side = min(observation_shape[:2]) if is_image else 0
    if torso == "auto":
        if side < MIN_IMAGE_SIDE["minatar"]:  # a vector, or an image too small for a convolution
            return "mlp"
        return "nature" if side >= MIN_IMAGE_SIDE["nature"] else "minatar"
    if torso != "mlp" and side < MIN_IMAGE_SIDE[torso]:
        raise UserError(
            f"--network.torso {torso} needs images of at least {MIN_IMAGE_SIDE[torso]} pixels per side, but these "
            f"observations have shape {observation_shape}: use --network.torso auto."
        )
    return torso


def make_torso(
    torso: str,
    observation_shape: tuple[int, ...],
    hidden_units: int,
    activation: str = "tanh",
    *,
    dense_as_convolution: bool = False,
) -> nn.Module:
    """Return a new torso; ``activation`` is that of dense layers on vectors."""
    kind = resolve_torso(torso, observation_shape)
    if kind == "mlp":
        return MlpTorso(observation_shape, hidden_units, activation)
    convolutions = CONVOLUTIONS[kind](observation_shape[-1])
    made = ConvTorso(convolutions, observation_shape, hidden_units, dense_as_convolution=dense_as_convolution)
    if kind in ORTHOGONAL_INIT_TORSOS:
        init_orthogonal(made)
    convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return made


def init_orthogonal(torso: nn.Module) -> None:
    """Initialize orthogonal weights with gain √2 and zero biases, so that ReLU layers keep the scale.

    PyTorch's default weights shrink it by √6 per layer. Two frames of a game differ little, and after three such layers
    so little that the first updates see only what all frames share.
    """
    for layer in torso.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            # Write into a contiguous copy, because the layer may have the channels-last layout.
            weight = torch.empty(layer.weight.shape)
            with torch.no_grad():
                layer.weight.copy_(nn.init.orthogonal_(weight, math.sqrt(2.0)))
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
