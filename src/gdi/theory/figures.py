"""Three figures of the theory: the coupling, P_Λ over iterations, and learning with and without E.

matplotlib is imported only here, and only when a figure is drawn.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gdi.errors import UserError, install_hint
from gdi.theory.learning import Comparison
from gdi.theory.transport import coupling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("theory-coupling.png", "theory-index-distribution.png", "theory-learning.png")

# Okabe and Ito's colors are distinct for all common types of color blindness.
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#666666"

TITLES = {
    "helps": "E sees the return: it wins",
    "clipped": "E sees clipped rewards, asp:3 broken: it loses",
    "trap": "E sees the return, larger lure: it loses",
}


def check_can_draw(directory: Path) -> None:
    """Raise UserError before any work if the figures cannot be drawn.

    Reasons are that matplotlib is missing, that the directory cannot be created, or that a figure already exists.
    """
    if find_spec("matplotlib") is None:
        raise UserError(f"--figures needs matplotlib: {install_hint('report')}.")
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--figures {directory} is a file: name a directory.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--figures {directory} cannot be created: {error.strerror}.") from None
    for name in NAMES:
        if (directory / name).exists():
            raise UserError(f"{directory / name} already exists: move it, or pass another directory to --figures.")


def draw_all(directory: Path, learning: tuple[Comparison, ...]) -> list[Path]:
    """Draw and save the three figures; return their paths."""
    check_can_draw(directory)
    directory.mkdir(parents=True, exist_ok=True)
    plain = [run for run in learning if not run.setting.natural]
    paths = [directory / name for name in NAMES]
    figures = (coupling_figure(), index_distribution_figure(plain), learning_figure(plain))
    for path, figure in zip(paths, figures, strict=True):
        figure.savefig(path, dpi=150)
    return paths


def _figure(columns: int, height: float = 3.6) -> tuple[Figure, Any]:
    # The object interface, unlike pyplot, needs no global state and no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.0 * columns, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns)
    for axis in np.atleast_1d(axes):
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def coupling_figure() -> Figure:
    """Plot the transport of lemma:dct_R1 on ten points: upper-triangular in the order of g, not of x."""
    from matplotlib.colors import PowerNorm

    figure, (in_space, in_order) = _figure(2, 4.3)
    x = np.arange(10)
    mass = np.array([3, 2, 4, 1, 2, 3, 2, 4, 1, 2], float)
    mass /= mass.sum()
    g = np.array([0.0, 1.6, 0.4, 2.0, 0.8, 0.2, 1.2, 1.8, 0.6, 1.0])
    gamma = coupling(mass, g)
    order = np.argsort(g)
    # Most entries are small, so a square-root scale shows them all.
    norm = PowerNorm(0.5, vmin=0.0, vmax=float(gamma.max()))
    for axis, matrix, ranks, label in (
        (in_space, gamma, x, "points in the order of x"),
        (in_order, gamma[np.ix_(order, order)], order, "the same points in the order of g"),
    ):
        image = axis.imshow(np.ma.masked_where(matrix <= 0, matrix), cmap="viridis", norm=norm)
        axis.set_xticks(x, [str(i) for i in ranks])
        axis.set_yticks(x, [str(i) for i in ranks])
        axis.set_xlabel("to y (columns sum to β = μ exp(g) / Z)")
        axis.set_ylabel("from x (rows sum to μ)")
        axis.set_title(label, fontsize=11)
        axis.spines[["top", "right"]].set_visible(True)
    in_order.text(2.4, 7.3, "no mass goes\nto smaller g", ha="center", fontsize=11)
    figure.colorbar(image, ax=[in_space, in_order], label="mass moved", shrink=0.85)
    return figure


def index_distribution_figure(runs: list[Comparison]) -> Figure:
    """Plot P_Λ over the iterations of E: the degree of exploration with which each setting ends."""
    figure, axes = _figure(len(runs))
    colors = (BLUE, GREEN, ORANGE)
    for axis, run in zip(np.atleast_1d(axes), runs, strict=True):
        weights = run.with_e.weights
        names = [f"ε = {value:g}" for value in run.setting.index.epsilon]
        axis.stackplot(np.arange(1, len(weights) + 1), weights.T, labels=names, colors=colors, alpha=0.85)
        axis.set_xscale("log")
        axis.set_xlim(1, len(weights))
        axis.set_ylim(0, 1)
        axis.set_title(TITLES[run.setting.name], fontsize=9.5)
        axis.set_xlabel("iteration (log scale)")
    np.atleast_1d(axes)[0].set_ylabel("$P_\\Lambda$: share of each index")
    handles, names = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", fontsize=10, frameon=False)
    return figure


def learning_figure(runs: list[Comparison]) -> Figure:
    """Plot the target of T (solid, the mean return over P_Λ) and the best index (dashed).

    Each is shown with and without E.
    """
    figure, axes = _figure(len(runs))
    for axis, run in zip(np.atleast_1d(axes), runs, strict=True):
        for label, color, one in (("with E", BLUE, run.with_e), ("without E", ORANGE, run.without_e)):
            axis.plot(one.target, color=color, label=f"{label}: target of T")
            axis.plot(one.best, color=color, linestyle="--", linewidth=1.2, label=f"{label}: best index")
        axis.set_title(TITLES[run.setting.name], fontsize=9.5)
        axis.set_xlabel("iteration")
        axis.set_ylim(0, 4.2)
        axis.grid(color=GRAY, alpha=0.2)
    np.atleast_1d(axes)[0].set_ylabel("exact expected return")
    np.atleast_1d(axes)[0].legend(loc="lower right", fontsize=8.5)
    return figure
