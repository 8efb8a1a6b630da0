"""Checks that sections share. Each yields a message that says what the user must change."""

from __future__ import annotations

from collections.abc import Iterator

# Maximum per axis: far above the paper's 50, far below what would exhaust memory.
MAX_BLOCKS = 100_000


def option(section: str, name: str) -> str:
    """Return the option ``--section.field``, with dashes for underscores."""
    return f"--{section}.{name.replace('_', '-')}" if section else f"--{name.replace('_', '-')}"


def positive(owner: object, section: str, *names: str) -> Iterator[str]:
    """Yield a problem for each of these fields that is not above 0."""
    for name in names:
        value = getattr(owner, name)
        if not value > 0:
            yield f"{option(section, name)} must be greater than 0, not {value}."


def not_negative(owner: object, section: str, *names: str) -> Iterator[str]:
    """Yield a problem for each of these fields that is below 0."""
    for name in names:
        value = getattr(owner, name)
        if not value >= 0:
            yield f"{option(section, name)} must be 0 or more, not {value}."


def fraction(owner: object, section: str, *names: str) -> Iterator[str]:
    """Check that each value is in [0, 1)."""
    for name in names:
        value = getattr(owner, name)
        if not 0.0 <= value < 1.0:
            yield f"{option(section, name)} must be in [0, 1), not {value}."
