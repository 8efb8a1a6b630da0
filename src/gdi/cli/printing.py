"""Where a command prints its tables."""

from __future__ import annotations

from rich.console import Console


def report_console() -> Console:
    """The terminal's own width; in a file or a pipe 120 columns, since rich would assume 80 and cut the tables up."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)
