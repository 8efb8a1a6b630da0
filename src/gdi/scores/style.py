"""One color, marker and dash per agent, the same in every figure.

The hues are those of Okabe and Ito, which people with any common color vision can tell apart. Their yellow is left out,
because it is hard to see on white. There are more agents than safe hues. The marker therefore shows the family in the
paper's tables (GDI, 200M model-free, 10B+ model-free, model-based, other). Within a family all hues differ.
"""

from __future__ import annotations

from dataclasses import dataclass

VERMILION, ORANGE, GREEN, BLUE, SKY, PURPLE = "#d55e00", "#e69f00", "#009e73", "#0072b2", "#56b4e9", "#cc79a7"
BLACK, GRAY = "#000000", "#7f7f7f"


@dataclass(frozen=True)
class Family:
    """A family's marker and dash, each by its matplotlib and its Plotly name."""

    marker: str
    plotly_marker: str
    dash: str | tuple[int, tuple[float, ...]]
    plotly_dash: str


GDI = Family("*", "star", "solid", "solid")
MODEL_FREE_200M = Family("^", "triangle-up", (0, (1, 1)), "dot")
MODEL_FREE_10B = Family("o", "circle", (0, (5, 1)), "dash")
MODEL_BASED = Family("s", "square", (0, (3, 1, 1, 1)), "dashdot")
OTHER = Family("D", "diamond", (0, (8, 2)), "longdash")
ABLATION = Family("X", "x", (0, (3, 1, 1, 1, 1, 1)), "longdashdot")
YOURS = Family("p", "pentagon", "solid", "solid")


@dataclass(frozen=True)
class Style:
    color: str
    family: Family

    @property
    def prominent(self) -> bool:
        """Return whether to draw an agent above and thicker than others: GDI's agents and the user's."""
        return self.family in (GDI, YOURS)


STYLES = {
    "GDI-H3": Style(VERMILION, GDI),
    "GDI-I3": Style(ORANGE, GDI),
    "Rainbow": Style(PURPLE, MODEL_FREE_200M),
    "IMPALA": Style(GREEN, MODEL_FREE_200M),
    "LASER": Style(BLUE, MODEL_FREE_200M),
    "R2D2": Style(GREEN, MODEL_FREE_10B),
    "NGU": Style(SKY, MODEL_FREE_10B),
    "Agent57": Style(BLUE, MODEL_FREE_10B),
    "MuZero": Style(PURPLE, MODEL_BASED),
    "DreamerV2": Style(SKY, MODEL_BASED),
    "SimPLe": Style(GRAY, MODEL_BASED),
    "Muesli": Style(GREEN, OTHER),
    "Go-Explore": Style(PURPLE, OTHER),
    "Fix Selection": Style(GRAY, ABLATION),
    "Boltzmann Selection": Style(PURPLE, ABLATION),
}

_YOURS = (BLACK, BLUE, GREEN, PURPLE, SKY, GRAY)


def styles_for(published: tuple[str, ...], yours: tuple[str, ...]) -> dict[str, Style]:
    """Return the styles of published agents by label, and of the user's agents in the given order."""
    own = {name: Style(_YOURS[i % len(_YOURS)], YOURS) for i, name in enumerate(yours)}
    return {**{name: STYLES[name] for name in published}, **own}
