"""``gdi version``: print the version."""

from __future__ import annotations

from gdi import __version__
from gdi.cli.parsing import OneLineParser


def run(argv: list[str]) -> int:
    """Print the version."""
    OneLineParser(prog="gdi version", description="Print the version of gdi, as gdi --version does.").parse_args(argv)
    print(__version__)
    return 0
