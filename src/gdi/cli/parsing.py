"""Parsing that answers bad input with one clear line."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import tyro

from gdi.errors import UserError, nearest

T = TypeVar("T")


class OneLineParser(argparse.ArgumentParser):
    """argparse, but an error is a UserError, and abbreviations are not guessed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message[:1].lower()}{message[1:]}. See {self.prog} --help.")

    def option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]


def whole_number(text: str) -> int:
    """``200000``, ``200_000``, ``2e5``."""
    try:
        return int(text)  # exactly, however large
    except ValueError:
        pass
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def parse_fields(default: T, argv: list[str], prog: str, other_options: Iterable[str], renamed: Mapping[str, str]) -> T:
    """Change fields of a frozen dataclass by ``--section.field value``, through tyro.

    ``renamed`` gives options that once had another name: a misspelt old one is answered with the present one.
    """
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            value, unknown = tyro.cli(
                type(default), args=argv, default=default, prog=prog, return_unknown_args=True, add_help=False
            )
    except SystemExit:
        raise UserError(f"{_one_line(told.getvalue())} See {prog} --help.") from None
    if unknown:
        option = unknown[0].partition("=")[0]
        if not option.startswith("-"):
            raise UserError(f"unexpected argument {option!r}. See {prog} --help.")
        known = [*other_options, *field_options(default, prog)]
        raise UserError(f"unknown option {option}.{nearest(option, known, renamed=renamed)} See {prog} --help.")
    return value


def fields_help(default: Any, prog: str) -> str:
    """tyro's help text for all fields."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        tyro.cli(type(default), args=["--help"], default=default, prog=prog)
    return told.getvalue()


def field_options(default: Any, prog: str) -> list[str]:
    return sorted(set(re.findall(r"--[a-z][\w.-]*", fields_help(default, prog))))


def _one_line(told: str) -> str:
    """The message out of tyro's box: what stands between its first two rules."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", told)
    lines = [line.strip(" │╭╮╰╯") for line in plain.splitlines()]
    is_rule = [bool(line) and set(line) <= {"─", "-", "━"} for line in lines]
    body: list[str] = []
    for line, rule in zip(lines[1:], is_rule[1:], strict=True):
        if rule and body:
            break
        if line and not rule:
            body.append(line)
    message = " ".join(body)
    return message if message.endswith(".") else f"{message}."
