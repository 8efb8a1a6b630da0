"""The figures of a report as PNG files, by matplotlib: one file per figure, in the view that the page opens with."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gdi.errors import UserError, install_hint
from gdi.report.document import Document, Figure, View

WIDTH_INCHES, DPI = 9.0, 150
DASHES: Mapping[str, Any] = {
    "solid": "solid", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (5, 2, 1, 2)), "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 3, 1, 3)),
}  # fmt: skip
STEPS = {"vh": "steps-pre", "hv": "steps-post"}
INKS = {"ink": "#1c1e21", "soft": "#5a5f66"}
BAND = "band"


def figures_of(document: Document) -> list[Figure]:
    """Return all figures of a report, in its order."""
    return [block for section in document.sections for block in section.blocks if isinstance(block, Figure)]


def write_pictures(document: Document, folder: Path) -> Path:
    """Write the figures into a folder and return it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError(f"--format png needs matplotlib: {install_hint('report')}.") from None
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures_of(document):
        view = next(iter(figure.views.values()), None)
        if view is not None and view.traces:
            draw(view, figure.height).savefig(folder / f"{figure.name}.png", dpi=DPI)
    return folder


def draw(view: View, height: int) -> Any:
    """Return a view as a matplotlib figure."""
    from matplotlib.figure import Figure as Canvas

    pixels = float(view.layout.get("height", height))
    canvas = Canvas(figsize=(WIDTH_INCHES, max(2.4, pixels / 100)), layout="constrained")
    names = list(dict.fromkeys((trace.get("xaxis", "x"), trace.get("yaxis", "y")) for trace in view.traces))
    columns = view.layout.get("grid", {}).get("columns", 1)
    panels = canvas.subplots(-(-len(names) // columns), columns, squeeze=False).ravel()
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    titles = [plain(note["text"]) for note in view.layout.get("annotations", ())]
    for number, (panel, name) in enumerate(zip(panels, names, strict=False)):
        own = [trace for trace in view.traces if (trace.get("xaxis", "x"), trace.get("yaxis", "y")) == name]
        _panel(canvas, panel, own, view.layout, name)
        if number < len(titles):
            panel.set_title(titles[number], loc="left", fontsize=10)
    if "grid" in view.layout:
        handles = {handle.get_label(): handle for panel in panels for handle in panel.get_legend_handles_labels()[0]}
        canvas.legend(handles=list(handles.values()), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return canvas


def plain(text: object) -> str:
    """Return a text of Plotly without its escapes."""
    return html.unescape(str(text)).replace("$", r"\$")


def _panel(canvas: Any, panel: Any, traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any], name: Any) -> None:
    for trace in traces:
        if trace.get("visible") == "legendonly":
            continue
        if trace.get("type") == "heatmap":
            _heatmap(canvas, panel, trace)
        else:
            _line(panel, trace)
    if layout.get(f"xaxis{name[0][1:]}", {}).get("visible", True) is False:
        panel.set_axis_off()
    for which, key in (("x", f"xaxis{name[0][1:]}"), ("y", f"yaxis{name[1][1:]}")):
        _axis(panel, which, layout.get(key, {}))
    if not any(trace.get("type") == "heatmap" for trace in traces):
        panel.grid(True, color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    handles, labels = panel.get_legend_handles_labels()
    if labels and "grid" not in layout:
        on_colors = any(trace.get("type") == "heatmap" for trace in traces)
        panel.legend(handles, labels, fontsize=8, frameon=on_colors, loc="best")


def _line(panel: Any, trace: Mapping[str, Any]) -> None:
    look = trace.get("line", trace.get("marker", {}))
    color = INKS.get(look.get("color"), look.get("color"))
    if trace.get("meta") == BAND:
        panel.fill(_floats(trace["x"]), _floats(trace["y"]), color=trace["fillcolor"], alpha=0.18, linewidth=0)
        return
    x = _floats(trace["x"])
    y = [plain(value) for value in trace["y"]] if isinstance(trace["y"][0], str) else _floats(trace["y"])
    style = {"color": color, "label": plain(trace["name"]) if trace.get("showlegend", True) else None}
    if "lines" not in trace.get("mode", "lines"):
        style |= {"linestyle": "none", "marker": "o", "markersize": look.get("size", 8) * 0.6}
    else:
        style |= {"linestyle": DASHES[look.get("dash", "solid")], "linewidth": look.get("width", 2) * 0.8}
        style |= {"drawstyle": STEPS.get(look.get("shape"), "default")}
    for which in ("error_x", "error_y"):
        if (error := trace.get(which)) is not None:
            high = _floats(error["array"])
            low = _floats(error.get("arrayminus", error["array"]))
            bars = {"xerr" if which == "error_x" else "yerr": np.array([low, high])}
            panel.errorbar(x, y, **bars, fmt="none", ecolor=color, capsize=2)
    panel.plot(x, y, **style)


def _heatmap(canvas: Any, panel: Any, trace: Mapping[str, Any]) -> None:
    z = np.array([_floats(row) for row in trace["z"]])
    if not trace.get("showscale", True):  # a background
        panel.pcolormesh(_floats(trace["x"]), _floats(trace["y"]), z, cmap="gray_r", vmax=2.5)
        return
    bounds = {"vmin": trace.get("zmin"), "vmax": trace.get("zmax")}
    if isinstance(trace["x"][0], str):
        names = [plain(name) for name in trace["x"]]
        mesh = panel.pcolormesh(z, cmap="cividis", **bounds)
        panel.set_xticks(np.arange(len(names)) + 0.5, names, rotation=45, ha="right", fontsize=8)
        panel.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=8)
    else:
        mesh = panel.pcolormesh(_floats(trace["x"]), _floats(trace["y"]), z, cmap="cividis", **bounds)
    bar = canvas.colorbar(mesh, ax=panel)
    bar.set_label(plain(trace.get("colorbar", {}).get("title", {}).get("text", "")), fontsize=9)


def _axis(panel: Any, which: str, axis: Mapping[str, Any]) -> None:
    title = axis.get("title", {}).get("text")
    if title:
        getattr(panel, f"set_{which}label")(plain(title))
    if "tickvals" in axis:
        getattr(panel, f"set_{which}ticks")(axis["tickvals"], axis["ticktext"])
    if "range" in axis:
        getattr(panel, f"set_{which}lim")(*axis["range"])
    elif axis.get("rangemode") == "tozero":
        low, high = getattr(panel, f"get_{which}lim")()
        getattr(panel, f"set_{which}lim")(min(low, 0.0), max(high, 0.0))
    if axis.get("autorange") == "reversed":
        getattr(panel, f"invert_{which}axis")()


def _floats(values: Sequence[Any]) -> list[float]:
    return [float("nan") if value is None else float(value) for value in values]
