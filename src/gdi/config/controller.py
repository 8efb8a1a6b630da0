"""P_Λ and the operator E: one dataclass per way to move P_Λ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class TileBanditConfig:
    """The paper's ensemble of tile bandits (alg:bva): E learns from episode returns."""

    kind: ClassVar[str] = "tile-bandit"

    num_bandits: int = 7
    """M, bandits per axis. Table H "Num. Bandits"."""
    learning_rates: tuple[float, ...] = (0.05, 0.1, 0.2)
    """lr of each bandit is drawn from these. Table H "Bandit Learning Rate"."""
    tile_widths: tuple[int, ...] = (2, 3, 4)
    """ta in blocks, drawn from these. Table H "Bandit Tiling Width" and "Accuracy of Tile coding" (one parameter)."""
    tile_offset_high: int = 60
    """to in blocks, drawn uniformly from 0 to this. Table H "Offset of Tile coding"."""
    offset_mode: Literal["modulo", "literal"] = "modulo"
    """modulo: the offset counts modulo the tile width, as in ordinary tile coding. literal: as eq:bandit_update."""
    num_candidates: int = 3
    """d, candidates per bandit. Table H "Num. Bandit Candidates"."""
    ucb_scale: float = 1.0
    """c of eq:bandit_score. Table H "Bandit UCB Scaling"."""
    per_environment: bool = False
    """True: one controller per environment, as alg:i3 is printed; False: one for all training environments."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "controller", "num_bandits", "num_candidates")
        yield from not_negative(self, "controller", "tile_offset_high", "ucb_scale")
        if not self.learning_rates or not all(0 < rate <= 1 for rate in self.learning_rates):
            yield f"--controller.learning-rates must be in (0, 1], not {self.learning_rates}."
        if not self.tile_widths or not all(width > 0 for width in self.tile_widths):
            yield f"--controller.tile-widths must be greater than 0, not {self.tile_widths}."


@dataclass(frozen=True)
class FixedConfig:
    """P_Λ is a point mass at the space's fixed values, and E the identity."""

    kind: ClassVar[str] = "fixed"


@dataclass(frozen=True)
class UniformConfig:
    """P_Λ is uniform over the searched axes, and E the identity."""

    kind: ClassVar[str] = "uniform"

    per_environment: bool = False
    """True: one controller per environment; False: one for all training environments."""


@dataclass(frozen=True)
class MultiplicativeWeightsConfig:
    """E as the paper's theory has it (asp:2)."""

    kind: ClassVar[str] = "multiplicative-weights"

    step_size: float = 0.1
    """η of asp:2."""
    per_environment: bool = False
    """True: one controller per environment; False: one for all training environments."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "controller", "step_size")


ControllerConfig = TileBanditConfig | FixedConfig | UniformConfig | MultiplicativeWeightsConfig
