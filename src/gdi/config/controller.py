"""Settings of the controller (E), which chooses exploration settings (λ): one dataclass per kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import MAX_BLOCKS, not_negative, positive
from gdi.config.index_space import needs_search
from gdi.config.traits import space_traits

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class TileBanditConfig:
    """Ensemble of tile bandits, a controller (E) that learns from episode returns (alg:bva)."""

    kind: ClassVar[str] = "tile-bandit"
    at_most: ClassVar[Mapping[str, float]] = {
        **{"num_bandits": 1_000, "num_candidates": 1_000},
        **{"tile_widths": MAX_BLOCKS, "tile_offset_high": MAX_BLOCKS},
    }
    searches: ClassVar[bool] = True

    num_bandits: int = 7
    """Number of bandits per axis (M). Table H "Num. Bandits"."""
    learning_rates: tuple[float, ...] = (0.05, 0.1, 0.2)
    """Learning rates of the bandits (lr); each bandit draws one. Table H "Bandit Learning Rate"."""
    tile_widths: tuple[int, ...] = (2, 3, 4)
    """Tile widths in blocks (ta); each bandit draws one. Table H "Bandit Tiling Width", "Accuracy of Tile coding"."""
    tile_offset_high: int = 60
    """Largest tile offset in blocks (to); each bandit draws one from 0 to this. Table H "Offset of Tile coding"."""
    offset_mode: Literal["modulo", "literal"] = "modulo"
    """How an offset shifts the tiles: modulo their width, as in ordinary tile coding, or as in eq:bandit_update."""
    num_candidates: int = 3
    """Number of candidates that each bandit proposes (d). Table H "Num. Bandit Candidates"."""
    ucb_scale: float = 1.0
    """Weight of the exploration bonus in the score of a tile (c, eq:bandit_score). Table H "Bandit UCB Scaling"."""
    per_environment: bool = False
    """Use one controller per environment, as alg:i3 prints it, instead of one for all."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "controller", "num_bandits", "num_candidates")
        yield from not_negative(self, "controller", "tile_offset_high", "ucb_scale")
        if not self.learning_rates or not all(0 < rate <= 1 for rate in self.learning_rates):
            yield f"--controller.learning-rates must be in (0, 1], not {self.learning_rates}."
        if not self.tile_widths or not all(width > 0 for width in self.tile_widths):
            yield f"--controller.tile-widths must be greater than 0, not {self.tile_widths}."


@dataclass(frozen=True)
class FixedConfig:
    """Controller that always uses the fixed values of the index space. It never learns."""

    kind: ClassVar[str] = "fixed"


@dataclass(frozen=True)
class UniformConfig:
    """Controller that draws exploration settings (λ) uniformly from the searched axes. It never learns."""

    kind: ClassVar[str] = "uniform"
    searches: ClassVar[bool] = True

    per_environment: bool = False
    """Use one controller per environment, instead of one for all."""


@dataclass(frozen=True)
class MultiplicativeWeightsConfig:
    """Controller of the paper's theory: multiplicative weights (asp:2)."""

    kind: ClassVar[str] = "multiplicative-weights"
    searches: ClassVar[bool] = True

    step_size: float = 0.1
    """Step size of the weights (η, asp:2)."""
    per_environment: bool = False
    """Use one controller per environment, instead of one for all."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "controller", "step_size")


@dataclass(frozen=True)
class ScheduleConfig:
    """Controller that moves one component of the exploration setting (λ) linearly with the sampled transitions."""

    kind: ClassVar[str] = "schedule"
    redraw: ClassVar[str] = "window"

    component: str = "epsilon"
    """Component of λ that moves. The others stay at the fixed values of the index space."""
    start: float = 1.0
    """Value of the component at the start."""
    end: float = 0.1
    """Value of the component at the end."""
    over_steps: int = 1_000_000
    """Number of transitions from the start value to the end value."""
    evaluation: float = 0.05
    """Value of the component in evaluations."""

    def value_at(self, transitions: int) -> float:
        """Return the value of the component after so many transitions."""
        share = min(1.0, transitions / self.over_steps)
        return self.start + share * (self.end - self.start)

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "controller", "over_steps")
        yield from not_negative(self, "controller", "start", "end", "evaluation")
        names = [field.name for field in fields(config.index_space)]
        if self.component not in names:
            yield (
                f"--controller.component {self.component!r} is not a component of λ: choose one of {', '.join(names)}."
            )
            return
        limit = space_traits(config.index_space).limits.get(self.component)
        if limit is not None and max(self.start, self.end, self.evaluation) > limit:
            yield f"--controller.start, end and evaluation must be at most {limit:g} for {self.component}: lower them."
        if getattr(config.index_space, self.component).search:
            yield needs_search(self.component)


ControllerConfig = TileBanditConfig | FixedConfig | UniformConfig | MultiplicativeWeightsConfig | ScheduleConfig
