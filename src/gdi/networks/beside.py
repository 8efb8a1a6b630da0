"""Vectors: beside an image, and normalized by their running moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gdi.config import Config
from gdi.networks.torsos import MIN_IMAGE_SIDE

if TYPE_CHECKING:
    from gdi.networks.agent import Seen

# The smallest image for the networks of Atari.
MIN_PICTURE_SIDE = MIN_IMAGE_SIDE["nature"]
# A number further from the mean than so many deviations is cut.
MOST_DEVIATIONS = 10.0


class Beside(nn.Module):
    """One dense layer that joins an image's features with the vectors beside it."""

    def __init__(self, hidden_units: int, vector_width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_units + vector_width, hidden_units)

    def forward(self, features: Tensor, vector: Tensor) -> Tensor:
        return torch.relu(self.dense(torch.cat([features, vector], dim=-1)))


class Normalizer(nn.Module):
    """Running mean and variance of the last axis, which are part of θ: they travel, and are saved, with it."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, seen: Seen) -> Seen:
        scaled = (seen.obs.float() - self.mean) / (self.variance + 1e-8).sqrt()
        return seen._replace(obs=scaled.clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS))

    def observe(self, seen: Seen, mask: Tensor) -> None:
        """Take in the observations of the masked steps: mask [T, B]."""
        values: Tensor = seen.obs[: len(mask)][mask].float()  # [steps, ..., width]
        values = values.flatten(0, -2)
        if not len(values):
            return
        count = self.count + len(values)
        mean, variance = values.mean(0), values.var(0, correction=0)
        gap = mean - self.mean
        within = (self.variance * self.count + variance * len(values)) / count
        self.variance.copy_(within + gap.square() * self.count * len(values) / count.square())
        self.mean += gap * len(values) / count
        self.count.copy_(count)


def make_normalizer(config: Config, observation_shape: tuple[int, ...]) -> Normalizer | None:
    """Return the normalizer of a vector or a small image, if the config asks for it.

    Bytes of an image too small to be a picture are rather kinds of things, such as the 11 of MiniGrid. Divided by 255
    they would all be nearly 0. Vectors beside an image stay as they are.
    """
    is_picture = len(observation_shape) == 3 and min(observation_shape[:2]) >= MIN_PICTURE_SIDE
    if not config.network.normalize or is_picture:
        return None
    return Normalizer(observation_shape[-1])
