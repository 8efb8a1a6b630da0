"""Package data: the style and the script of the report page, and Plotly's cartesian bundle with its license."""

from __future__ import annotations

from importlib.resources import files

# The file plotly-cartesian.min.js of the npm package plotly.js-cartesian-dist-min 4.1.1, unchanged.
PLOTLY = "plotly-cartesian-4.1.1.min.js"


def read_text(name: str) -> str:
    """Return one data file."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
