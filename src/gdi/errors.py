"""Errors that are the user's to mend: one clear line, exit code 2, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Bad input. The message is one line that says what is wrong and what to do."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """`` Did you mean 'a' or 'b'?`` for a misspelt name, or an empty string when nothing is near."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    folded = get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.5)
    if not folded:
        return ""
    return " Did you mean " + " or ".join(repr(by_folded[key]) for key in folded) + "?"
