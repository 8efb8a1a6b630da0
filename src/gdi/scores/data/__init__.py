"""Package data: the numbers that the paper prints, with their sources. See README.md in this folder."""

from __future__ import annotations

import csv
from importlib.resources import files


def read_csv(name: str) -> list[dict[str, str]]:
    """Return the rows of one data file, with every cell as text, exactly as written."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
