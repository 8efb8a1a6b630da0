"""Errors that end a run with one clear line instead of a traceback: bad input, and diverged training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple


class UserError(Exception):
    """Bad input. The message is one line that says what is wrong and what to do."""


class DivergenceError(RuntimeError):
    """Training that diverged: too many NaN or infinite losses in a row, or such a policy."""


class Fault(NamedTuple):
    """Something that an environment did wrong."""

    env: str  # its id
    what: str  # one line
    trace: str  # the traceback, or empty
    copy: int | None = None  # the number of the environment, if it is known
    step: int | None = None  # of the episode, if it is known

    def __str__(self) -> str:
        where = [f"environment {self.env!r}"]
        if self.copy is not None:
            where.append(f"copy {self.copy}")
        if self.step is not None:
            where.append(f"step {self.step:,} of its episode" if self.step else "at a reset")
        return f"{', '.join(where)}: {self.what}"


class EnvironmentFaultError(RuntimeError):
    """An environment that raised an error, broke its rules, hung or died. The run is saved and can be resumed."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault

    def __str__(self) -> str:
        return str(self.fault)


# The earlier name, for code that catches it.
Diverged = DivergenceError


def install_hint(extra: str) -> str:
    """Return the install command for a missing extra.

    It installs from the clone, because the pins live there and the package is on no index.
    """
    return f"in the clone of gdi run make setup, or pip install -c constraints.txt '.[{extra}]'"


def fold(name: str) -> str:
    """Return a name without dashes, underscores, spaces and case, for comparison."""
    return re.sub(r"[-_\s]", "", name).casefold()


def did_you_mean(name: str, known: Iterable[str], count: int = 3, renamed: Mapping[str, str] | None = None) -> str:
    """Return `` Did you mean 'a' or 'b'?`` for a misspelled name, or an empty string when no name is near.

    ``renamed`` maps earlier names to the current ones, which are suggested for them.
    """
    spellings = {**(renamed or {}), **{candidate: candidate for candidate in known}}
    by_folded = {fold(spelling): current for spelling, current in spellings.items()}
    near = get_close_matches(fold(name), by_folded, n=count, cutoff=0.6)
    return suggestion(by_folded[key] for key in near)


def suggestion(names: Iterable[str]) -> str:
    """Return `` Did you mean 'a' or 'b'?``, or an empty string without names."""
    quoted = [repr(name) for name in dict.fromkeys(names)]
    return f" Did you mean {' or '.join(quoted)}?" if quoted else ""
