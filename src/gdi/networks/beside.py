"""Vectors: beside an image, and normalized by their running moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gdi.config import Config

if TYPE_CHECKING:
    from gdi.networks.agent import Seen

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
    """Running mean and variance of vectors, which are part of θ: they travel, and are saved, with it."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, width: int, field: str) -> None:
        """``field``: which field of what the agent sees is normalized, obs or vector."""
        super().__init__()
        self._field = field
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, seen: Seen) -> Seen:
        values: Tensor = getattr(seen, self._field).float()
        scaled = (values - self.mean) / (self.variance + 1e-8).sqrt()
        changed: Any = {self._field: scaled.clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)}
        return seen._replace(**changed)

    def observe(self, seen: Seen, mask: Tensor) -> None:
        """Take in the observations of the masked steps: mask [T, B]."""
        values: Tensor = getattr(seen, self._field)[: len(mask)][mask].float()  # [steps, width]
        if not len(values):
            return
        count = self.count + len(values)
        mean, variance = values.mean(0), values.var(0, correction=0)
        gap = mean - self.mean
        within = (self.variance * self.count + variance * len(values)) / count
        self.variance.copy_(within + gap.square() * self.count * len(values) / count.square())
        self.mean += gap * len(values) / count
        self.count.copy_(count)


def make_normalizer(config: Config, observation_shape: tuple[int, ...], vector_width: int) -> Normalizer | None:
    """Return the normalizer of the vectors, if the config asks for one and there are any."""
    if not config.network.normalize:
        return None
    if len(observation_shape) == 1:
        return Normalizer(observation_shape[0], "obs")
    return Normalizer(vector_width, "vector") if vector_width else None
