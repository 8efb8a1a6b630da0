"""Parse arguments, and answer bad input with one clear line."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from gdi.errors import UserError, fold, suggestion

T = TypeVar("T")

JSON_HELP = "print a single JSON object to stdout and nothing else"
# The largest whole number that an option takes: what 64 bits hold.
LARGEST = 2**63 - 1
# The longest name of a file on the usual file systems.
LONGEST_NAME = 255
# Names less alike than this are not suggested.
NEAR = 0.78
# A message names at most this many options.
MOST_SUGGESTED = 3


class OneLineParser(argparse.ArgumentParser):
    """An argparse parser whose errors are UserErrors, and which does not guess abbreviations."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise a UserError with the message in one line, and the nearest option for an unknown one."""
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            raise UserError(unknown_argument(unknown.partition(" ")[0], f"{self.prog} --help", self.option_names()))
        text = re.sub(r"^argument ([^\s/:]+)\S*:", r"\1:", message)  # an option with several names has one here
        text = re.sub(r"^(\S+): expected (?:at least )?one argument$", r"\1 needs a value", text)
        text = re.sub(r"^the following arguments are required: (.*)$", r"missing \1: add it", text)
        start = text[:1] if text[:2].isupper() else text[:1].lower()  # RUN_DIR stays as it is
        raise UserError(f"{start}{text[1:]}. See {self.prog} --help.")

    def option_names(self) -> list[str]:
        """Return the names of all options."""
        return [name for action in self._actions for name in action.option_strings]


def whole_number(text: str) -> int:
    """Parse ``200000``, ``200_000`` or ``2e5``."""
    shown = shorten(text)
    try:
        value = int(text)  # exact, however large
    except ValueError:
        try:
            number = float(text.replace("_", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{shown!r} is not a number") from None
        if not number.is_integer():
            raise argparse.ArgumentTypeError(f"{shown!r} is not a whole number") from None
        value = int(number)
    if abs(value) > LARGEST:
        raise argparse.ArgumentTypeError(f"{shown!r} is too large: the limit is {LARGEST}")
    return value


def path_argument(text: str) -> Path:
    """Parse the path of a file or a folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: give a path")
    if "\0" in text or any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(text).parts):
        raise argparse.ArgumentTypeError(
            f"{shorten(text)!r} cannot be a run folder or a file: a name has at most {LONGEST_NAME} bytes"
        )
    return Path(text)


def printable(text: str) -> str:
    """Return a text in which characters that steer a terminal, or that no encoding has, are written as codes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shorten(text: str, most: int = 60) -> str:
    """Return a text in one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def parse_fields(default: T, argv: list[str], prog: str) -> tuple[T, list[str]]:
    """Change fields of a frozen dataclass by ``--section.field value``, through tyro.

    Return the changed dataclass and the words that are not among its options.
    """
    import tyro  # not at the top: most commands start without it

    captured = io.StringIO()
    try:
        with contextlib.redirect_stderr(captured):
            return tyro.cli(
                type(default),
                args=argv,
                default=default,
                prog=prog,
                return_unknown_args=True,
                add_help=False,
                # The help is ours. Its comments would cost half of the time, because tyro reads every source file.
                config=(tyro.conf.HelptextFromCommentsOff,),
            )
    except SystemExit:
        raise UserError(f"{_one_line(captured.getvalue())} See {prog} --help-all.") from None


def unknown_argument(word: str, advice: str, known: Iterable[str], renamed: Mapping[str, str] | None = None) -> str:
    """Return the message for a word that no option takes.

    ``advice`` is the command that shows the options. ``renamed`` maps earlier options to the current ones, which are
    suggested for them.
    """
    option = word.partition("=")[0]
    if not option.startswith("-"):
        return f"unexpected argument {shorten(option)!r}. See {advice}."
    near = suggestion(nearest_options(option, known, renamed or {}))
    return f"unknown option {shorten(option)}.{near} See {advice}."


def nearest_options(option: str, known: Iterable[str], renamed: Mapping[str, str]) -> list[str]:
    """Return the options that a misspelled one probably means: few, or none.

    An option may be meant without its section: ``--learning-rate`` means ``--optimizer.learning-rate``.
    """
    options = {name: name for name in known}
    spellings = {**{old: new for old, new in renamed.items() if new in options}, **options}
    likeness: dict[str, float] = {}
    for spelling, current in spellings.items():
        likeness[current] = max(likeness.get(current, 0.0), _likeness(option, spelling))
    if not likeness:
        return []
    best = max(likeness.values())
    if best < NEAR:
        return _with_words_of(option, likeness)
    near = [name for name, found in likeness.items() if found == best]
    return near if len(near) <= MOST_SUGGESTED else []


def _likeness(option: str, candidate: str) -> float:
    """Return how alike two options are, from 0 to 1. Sections count less than names."""
    name, other = option.rpartition(".")[2], candidate.rpartition(".")[2]
    whole = _ratio(option.replace(".", ""), candidate.replace(".", ""))
    return max(whole, 0.99 * _ratio(name, other), 0.98 * _ratio(option.replace(".", ""), other))


def _ratio(one: str, other: str) -> float:
    """Return how alike two words are. The same letters in another order, as in --jsno, are a slip of the fingers."""
    one, other = fold(one), fold(other)
    ratio = SequenceMatcher(None, one, other, autojunk=False).ratio()
    return max(ratio, 0.9) if sorted(one) == sorted(other) else ratio


def _with_words_of(option: str, known: Iterable[str]) -> list[str]:
    """Return the options that have all words of this one: ``--batch-size`` finds ``--data.batch-size-sequences``."""
    words = set(re.findall(r"[a-z0-9]+", option.casefold()))
    if len(words) < 2:
        return []  # one word alone, such as --size, says too little
    found = [name for name in known if words <= set(re.findall(r"[a-z0-9]+", name))]
    return found if len(found) <= MOST_SUGGESTED else []


# tyro's messages, and the same in our words.
REWORDED = (
    (r"error parsing (\S+): could not convert string to float: (.*)", r"\1 needs a number, not \2"),
    (r"error parsing (\S+): invalid literal for int\(\) with base 10: (.*)", r"\1 needs a whole number, not \2"),
    (r"error parsing (\S+): Could not find valid parse for arguments: \[(.*)\]", r"\1 cannot take \2"),
    (r"error parsing (\S+): (.*)", r"\1: \2"),
    (r"missing value for argument '(\S+)'\. Expected .*", r"\1 needs a value"),
    (r"invalid choice (.*) for argument '(\S+)'\. Expected one of \((.*)\)", r"\2 \1 is not a choice: use one of \3"),
)


def _one_line(box: str) -> str:
    """Return the message inside tyro's box, which stands between its first two rules."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip(" │╭╮╰╯") for line in plain.splitlines()]
    is_rule = [bool(line) and set(line) <= {"─", "-", "━"} for line in lines]
    body: list[str] = []
    for line, rule in zip(lines[1:], is_rule[1:], strict=True):
        if rule and body:
            break
        if line and not rule:
            body.append(line)
    message = " ".join(body).rstrip(".")
    message = f"{message[:1].lower()}{message[1:]}"
    for pattern, reworded in REWORDED:
        message, changes = re.subn(f"^{pattern}$", reworded, message)
        if changes:
            break
    return f"{shorten(message, 300)}."
