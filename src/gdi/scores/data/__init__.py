"""Package data: what the paper prints, with its sources. See README.md beside this file."""

from __future__ import annotations

import csv
from importlib.resources import files


def read_csv(name: str) -> list[dict[str, str]]:
    """The rows of one data file, every cell as text, exactly as written."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
