"""Settings of the network (Θ): torso, core and families of parameters. The heads belong to the algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class NetworkConfig:
    """Torso, recurrent core and families of parameters (Equ: i3 casa equ, Equ: h3 casa equ)."""

    at_most: ClassVar[Mapping[str, float]] = {"hidden_units": 8_192, "lstm_units": 4_096}

    torso: Literal["auto", "mlp", "minatar", "nature", "impala-shallow", "impala-deep"] = "impala-deep"
    """Encoder of one observation; auto chooses by the shape of the observation. Table H "Backbone"."""
    hidden_units: int = 256
    """Width of the torso's dense output layer."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the torso mlp, which encodes vectors."""
    lstm_units: int = 256
    """Size of the recurrent core; 0 makes the network feed-forward. Table H "LSTM Units"."""
    families: Literal[1, 2] = 1
    """Number of families of parameters: 1 for GDI-I, where A1 = A2, or 2 for GDI-H."""
    shared_torso: bool = False
    """Share torso and core between the two families of GDI-H, which is cheaper. The paper shares nothing."""

    normalize: bool = False
    """Shift and scale vectors, and images of less than 36 pixels per side, by their running mean and variance."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "network", "hidden_units")
        yield from not_negative(self, "network", "lstm_units")
        if self.shared_torso and self.families == 1:
            yield "--network.shared-torso shares between two families, and this agent has one: drop it or use gdi-h3."
