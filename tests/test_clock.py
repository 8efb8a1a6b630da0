"""Durations as people read them."""

from __future__ import annotations

import pytest

from gdi.clock import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (12, "12 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (720, "12 min"),
        (3599, "1 h 00 min"),
        (11100, "3 h 05 min"),
        (4e6, "1,111 h 07 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
