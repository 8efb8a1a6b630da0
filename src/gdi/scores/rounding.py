"""Printed numbers: whether a text is a value rounded to the text's own digits."""

from __future__ import annotations

import re


def last_digit_unit(text: str) -> float:
    """Return one unit of the last printed digit: 0.01 for ``832.50``, 1e-9 for ``4.81E-07``."""
    match = re.fullmatch(r"-?\d+(?:\.(\d+))?(?:[eE]([+-]?\d+))?", text)
    if match is None:
        raise ValueError(f"not a printed number: {text!r}")
    return float(10.0 ** (int(match[2] or 0) - len(match[1] or "")))


def agrees(text: str, value: float) -> bool:
    """Return whether the text is the value rounded to the text's digits."""
    try:
        half = last_digit_unit(text) / 2
    except ValueError:
        return False
    return abs(float(text) - value) <= half * (1 + 1e-9)


def format_like(value: float, like: str) -> str:
    """Format the value with the digits of `like`."""
    match = re.fullmatch(r"-?\d+(?:\.(\d+))?([eE][+-]?\d+)?", like)
    digits = len(match[1] or "") if match else 2
    return f"{value:.{digits}E}" if match and match[2] else f"{value:.{digits}f}"
