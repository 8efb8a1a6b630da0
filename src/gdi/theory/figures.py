"""Three pictures of the theory: the coupling, P_Λ over iterations, and learning with and without E.

matplotlib is imported only here, and only when a picture is drawn.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gdi.errors import UserError, install_extra
from gdi.theory.learning import Comparison
from gdi.theory.transport import coupling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("theory-coupling.png", "theory-index-distribution.png", "theory-learning.png")

# Okabe and Ito's colours, distinct under the common colour blindnesses.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"

TITLES = {
    "helps": "E sees the return: it wins",
    "clipped": "E sees clipped rewards, asp:3 broken: it loses",
    "trap": "E sees the return, larger lure: it loses",
}


def refuse_to_overwrite(directory: Path) -> None:
    """Raise before any work is done: matplotlib missing, no directory can be made, or a picture already there."""
    if find_spec("matplotlib") is None:
        raise UserError(f"--figures needs matplotlib: {install_extra('report')}.")
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--figures {directory} is a file, not a directory.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--figures {directory} cannot be made: {error.strerror}.") from None
    for name in NAMES:
        if (directory / name).exists():
            raise UserError(
                f"{directory / name} exists already; --figures does not overwrite: move it or name another place."
            )


def draw_all(directory: Path, learning: tuple[Comparison, ...]) -> list[Path]:
    """Draw and save the three figures; returns their paths."""
    refuse_to_overwrite(directory)
    directory.mkdir(parents=True, exist_ok=True)
    plain = [run for run in learning if not run.setting.natural]
    paths = [directory / name for name in NAMES]
    figures = (coupling_figure(), index_distribution_figure(plain), learning_figure(plain))
    for path, figure in zip(paths, figures, strict=True):
        figure.savefig(path, dpi=150)
    return paths


def _figure(columns: int, height: float = 3.6) -> tuple[Figure, Any]:
    # The object interface: no pyplot, so no global state and no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.0 * columns, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns)
    for axis in np.atleast_1d(axes):
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def coupling_figure() -> Figure:
    """The transport of lemma:dct_R1 on ten points: upper-triangular in the order of g, not in that of x."""
    from matplotlib.colors import PowerNorm

    figure, (in_space, in_order) = _figure(2, 4.3)
    x = np.arange(10)
    mass = np.array([3, 2, 4, 1, 2, 3, 2, 4, 1, 2], float)
    mass /= mass.sum()
    g = np.array([0.0, 1.6, 0.4, 2.0, 0.8, 0.2, 1.2, 1.8, 0.6, 1.0])
    gamma = coupling(mass, g)
    order = np.argsort(g)
    # Most entries are small; a square-root scale shows them all.
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
    """P_Λ over the iterations of E: which degree of exploration each setting ends with."""
    figure, axes = _figure(len(runs))
    colours = (BLUE, GREEN, ORANGE)
    for axis, run in zip(np.atleast_1d(axes), runs, strict=True):
        weights = run.with_e.weights
        names = [f"ε = {value:g}" for value in run.setting.index.epsilon]
        axis.stackplot(np.arange(1, len(weights) + 1), weights.T, labels=names, colors=colours, alpha=0.85)
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
    """The target of T (solid: the mean return over P_Λ) and the best index (dashed), with and without E."""
    figure, axes = _figure(len(runs))
    for axis, run in zip(np.atleast_1d(axes), runs, strict=True):
        for label, colour, one in (("with E", BLUE, run.with_e), ("without E", ORANGE, run.without_e)):
            axis.plot(one.target, color=colour, label=f"{label}: target of T")
            axis.plot(one.best, color=colour, linestyle="--", linewidth=1.2, label=f"{label}: best index")
        axis.set_title(TITLES[run.setting.name], fontsize=9.5)
        axis.set_xlabel("iteration")
        axis.set_ylim(0, 4.2)
        axis.grid(color=GREY, alpha=0.2)
    np.atleast_1d(axes)[0].set_ylabel("exact expected return")
    np.atleast_1d(axes)[0].legend(loc="lower right", fontsize=8.5)
    return figure
