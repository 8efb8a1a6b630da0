"""The console for tables."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class ReportConsole(Console):
    """A console that leaves a closed pipe to the caller, as ``print`` does."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, where rich would exit with code 1."""
        raise BrokenPipeError


def report_console() -> Console:
    """Return a console as wide as the terminal, or with 120 columns in a file or a pipe.

    There rich would assume 80 columns and break the tables.
    """
    console = ReportConsole(highlight=False)
    return console if console.is_terminal else ReportConsole(highlight=False, width=120)
