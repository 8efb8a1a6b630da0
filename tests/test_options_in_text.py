"""Every ``--section.field`` that a message or a page names is an option: advice that cannot be typed helps nobody.

Options are known from the config's dataclasses, not from the command's help, so that the options of every kind of a
section count, also of those that the default config does not have.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import gdi
from gdi.config import Config
from gdi.placement import PlacementConfig

PACKAGE = Path(gdi.__file__).parent
ROOT = Path(__file__).resolve().parent.parent
# Options of several parts only: the plain ones, such as --steps, belong to several commands.
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*\.[a-z0-9.-]+)")
# Words that stand for any option.
PLACEHOLDERS = {"section.field"}


def dataclasses_in(kind: Any) -> list[type[Any]]:
    """The dataclasses that a value of this type may be: itself, or the members of a union."""
    if get_origin(kind) in (Union, types.UnionType):
        return [found for member in get_args(kind) for found in dataclasses_in(member)]
    return [kind] if isinstance(kind, type) and is_dataclass(kind) else []


def options_of(cls: type[Any], prefix: str = "") -> Iterator[str]:
    """All that can be typed below ``prefix``, without the dashes; sections themselves are not among them."""
    hints = get_type_hints(cls)
    for field in fields(cls):
        name, kind = field.name.replace("_", "-"), hints[field.name]
        sections = dataclasses_in(kind)
        for section in sections:
            yield from options_of(section, f"{prefix}{name}.")
        if not sections:
            yield prefix + name
            if kind is bool:
                yield f"{prefix}no-{name}"


KNOWN = {*options_of(Config), *options_of(PlacementConfig, "placement.")}


def is_known(option: str) -> bool:
    """True for an option, and for a section with the rest left out: ``index-space.epsilon``, ``inverse-tau-{1,2}``.

    A text may name a whole section, and a name that a program completes ends with a hyphen or a dot.
    """
    if option in KNOWN or option in PLACEHOLDERS:
        return True
    section = option if option.endswith(("-", ".")) else f"{option}."
    return any(known.startswith(section) for known in KNOWN)


def named_in(text: str) -> Iterator[tuple[int, str]]:
    """(line within the text, option) of each that it names; the full stop of a sentence is no part of one."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in OPTION.finditer(line):
            yield number, match[1].rstrip(".")


def string_lines(source: str) -> Iterator[tuple[int, str]]:
    """(line, option) of each that a string of the program names: literals, docstrings, fixed parts of f-strings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for number, option in named_in(node.value):
                yield node.lineno + number - 1, option


def all_named() -> Iterator[tuple[str, int, str]]:
    """(file, line, option) of the whole package and of all pages."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, option in string_lines(path.read_text(encoding="utf-8")):
            yield f"src/gdi/{path.relative_to(PACKAGE)}", line, option
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for line, option in named_in(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), line, option


def test_every_option_that_a_text_names_exists() -> None:
    named = list(all_named())
    assert len(named) > 50, "the search for options has lost its way"
    unknown = [f"{file}:{line} names --{option}" for file, line, option in named if not is_known(option)]
    assert not unknown, "no such options:\n" + "\n".join(unknown)


def test_a_made_up_option_is_found() -> None:
    source = 'def f():\n    """Lower\n    --learner.learning-speed."""\n    return f"{1}: add --run.no-steps"\n'
    found = sorted(string_lines(source))
    assert found == [(3, "learner.learning-speed"), (4, "run.no-steps")]
    assert not any(is_known(option) for _, option in found)
    assert not is_known("run.no-threads"), "only a switch has a form that switches it off"
    assert not is_known("learn"), "half a word is no section"


def test_what_the_dataclasses_say_is_what_can_be_typed() -> None:
    for option in ("env.num-envs", "run.overlap", "run.no-overlap", "placement.no-lockstep", "run"):
        assert is_known(option), option
