"""Errors that end a run with one clear line, never a traceback: what the user is to mend, and a diverged training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class UserError(Exception):
    """Bad input. The message is one line that says what is wrong and what to do."""


class Diverged(RuntimeError):
    """Losses or gradients were not finite too many times in a row, or a policy is not."""


def install_extra(extra: str) -> str:
    """What to type for a missing optional package; by path, for the pins come with the clone and no index has us."""
    return f"in the clone of gdi run make setup, or pip install -c constraints.txt '.[{extra}]'"


def nearest(name: str, known: Iterable[str], count: int = 3, renamed: Mapping[str, str] | None = None) -> str:
    """`` Did you mean 'a' or 'b'?`` for a misspelt name, or an empty string when nothing is near.

    ``renamed`` has earlier names, and the present ones to suggest for them.
    """
    spellings = {**(renamed or {}), **{candidate: candidate for candidate in known}}
    by_folded = {spelling.casefold(): wanted for spelling, wanted in spellings.items()}
    folded = get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.5)
    if not folded:
        return ""
    return " Did you mean " + " or ".join(repr(one) for one in dict.fromkeys(by_folded[key] for key in folded)) + "?"
