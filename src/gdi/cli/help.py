"""The help of commands that take settings: a short one for newcomers, and a long one by section."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gdi.cli.parsing import OneLineParser
from gdi.cli.settings import KINDS, PLACEMENT, SHORT, ShortOption, option_name
from gdi.config import SECTIONS, Config, kind_of

LONG_INTRODUCTION = """\
All settings by section. The defaults are those of {preset} at scale {scale}. Add a PRESET, --env or --scale to see \
theirs. Words such as alg:bva are labels in the LaTeX source of the GDI paper."""
PAPER_ROWS = ' "Table H" is that paper\'s table of hyperparameters, followed by the name of the row.'
# The environment has a separate option, --env, because the scale depends on it.
NOT_TYPED = ("--env.id",)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """argparse's formatter for a terminal of any width, which keeps indented lines as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=help_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (line if line.startswith(" ") or not line else _fill(line, width) for line in text.splitlines())
        return "\n".join(lines)


def help_width() -> int:
    """Return the width of the terminal, at most 100 characters."""
    return min(shutil.get_terminal_size((100, 24)).columns, 100)


def wants_help(argv: list[str]) -> Literal["", "short", "all"]:
    """Return which help the words request, if any."""
    if "--help-all" in argv:
        return "all"
    return "short" if "-h" in argv or "--help" in argv else ""


def without_help(argv: list[str]) -> list[str]:
    """Return the words without those that request help."""
    return [word for word in argv if word not in ("-h", "--help", "--help-all")]


def add_help_options(parser: OneLineParser) -> None:
    """Add ``--help`` and ``--help-all``."""
    parser.add_argument("-h", "--help", action="store_true", help="show this help")
    parser.add_argument("--help-all", action="store_true", help="show every option, by section")


def add_short_options(parser: OneLineParser, config: Config) -> None:
    """Add the short options of settings, for their help only: they are parsed as settings."""
    for short in SHORT:
        text = f"{short.help} (default: {_default(short, config)})"
        parser.add_argument(short.option, metavar=short.metavar, help=text)


def _default(short: ShortOption, config: Config) -> str:
    return show(getattr(getattr(config, short.section), short.field))


def sections_help(config: Config, prog: str, *, placement: bool) -> str:
    """Return the help of all settings of this config's kinds, section by section."""
    width = help_width()
    rows = kind_of(config.learner) == "gdi"  # other systems do not have the hyperparameters of the GDI paper
    introduction = LONG_INTRODUCTION.format(preset=config.preset, scale=config.scale) + (PAPER_ROWS if rows else "")
    sections = {name: getattr(config, name) for name in SECTIONS} | ({"placement": PLACEMENT} if placement else {})
    blocks = ["\n".join(_section_lines(name, section, prog, width, rows)) for name, section in sections.items()]
    return "\n\n".join([_fill(introduction, width), *blocks])


def _section_lines(name: str, section: Any, prog: str, width: int, rows: bool) -> Iterator[str]:
    """Yield the heading of a section, the choice of its kind, and its options."""
    purpose = " ".join(inspect.cleandoc(type(section).__doc__ or "").partition("\n\n")[0].replace("``", "").split())
    yield from _wrap(f"{name.replace('_', '-')}: {_lower(purpose)}", width, "", "  ")
    if name in KINDS:
        flag = option_name(name)
        yield f"  {flag} {{{','.join(KINDS[name])}}}"
        text = f"kind of this section; {prog} {flag} KIND --help-all shows its options (default: {kind_of(section)})"
        yield from _wrap(text, width)
    yield from _option_lines(section, (name,), width, rows)


def _option_lines(section: Any, path: tuple[str, ...], width: int, rows: bool) -> Iterator[str]:
    """Yield each option with its text; with ``rows`` also with its row in the paper's table."""
    documented, hints = field_docs(type(section)), get_type_hints(type(section))
    for f in fields(section):
        value, option = getattr(section, f.name), option_name(*path, f.name)
        if is_dataclass(value):
            yield from _option_lines(value, (*path, f.name), width, rows)
        elif f.compare and option not in NOT_TYPED:
            if isinstance(value, bool):
                yield f"  {option}, {option_name(*path, f'no_{f.name}')}"
            else:
                yield f"  {option} {_metavar(hints[f.name])}"
            words, row, name = documented.get(f.name, "").partition("Table H")
            text = f"{_lower(words)}{row}{name}" if rows else _lower(words)
            yield from _wrap(f"{text.strip()} (default: {show(value)})".strip(), width)


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the text below each field of a class, in one line each. A class without source has none."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError, SyntaxError):
            continue
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for statement, following in pairwise(statements):
            if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
                continue
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                found[statement.target.id] = " ".join(str(following.value.value).split())
    return found


def _metavar(hint: Any) -> str:
    repeated = get_origin(hint) is tuple
    inner = get_args(hint)[0] if repeated else hint
    if get_origin(inner) is Literal:
        name = "{" + ",".join(str(choice) for choice in get_args(inner) if choice != "") + "}"
    else:
        name = {int: "N", float: "X", str: "TEXT"}.get(inner, "VALUE")
    return f"{name} ..." if repeated else name


def show(value: Any) -> str:
    """Return the value of a setting as it is typed, or as on and off."""
    if isinstance(value, tuple):
        return " ".join(map(show, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.10g}"
    return "none" if value == "" else str(value)


def _lower(text: str) -> str:
    """Return a text with a lower-case first letter, unless its first word is a name such as GPU or AdamW."""
    first = text.partition(" ")[0]
    is_name = not first[:1].isascii() or re.search("[A-Z]", first[1:])
    return text if is_name else f"{text[:1].lower()}{text[1:]}"


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)


def _wrap(text: str, width: int, first: str = " " * 8, later: str = " " * 8) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def print_help(
    which: Literal["short", "all"],
    config: Config,
    make_parser: Callable[[Config, bool], OneLineParser],
    *,
    placement: bool,
) -> None:
    """Print the short help of a command, or the whole with all settings."""
    parser = make_parser(config, which == "all")
    print(parser.format_help())
    if which == "all":
        print(sections_help(config, parser.prog, placement=placement))
