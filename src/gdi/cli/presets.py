"""``gdi presets``: list the presets and scales, and the settings of one preset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from gdi.cli.help import show
from gdi.cli.parsing import JSON_HELP, OneLineParser
from gdi.cli.printing import report_console
from gdi.cli.settings import KINDS, option_name
from gdi.config import SECTIONS, Config, differences, kind_of
from gdi.presets import DEFAULT_PRESET, PRESETS, SCALES, make_config

MORE = """\
gdi presets PRESET --env ENV (or --scale SCALE) lists the settings of a preset that differ from gdi-i3's.
gdi train PRESET --env ENV --help-all lists all its settings."""


def changes(base: Config, other: Config) -> dict[str, Any]:
    """Return the fields that differ with their new values, without the names of preset and scale."""
    return {name: new for name, _, new in differences(base, other) if name not in ("preset", "scale")}


def settings(config: Config) -> dict[str, Any]:
    """Return the value of every option that a preset sets, with the kinds of its sections."""
    found: dict[str, Any] = {"--steps": config.steps}
    for name in SECTIONS:
        section = getattr(config, name)
        if name in KINDS:
            found[option_name(name)] = kind_of(section)
        found |= _settings_in(section, (name,))
    return found


def _settings_in(section: Any, path: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for f in fields(section):
        value, here = getattr(section, f.name), (*path, f.name)
        found |= _settings_in(value, here) if is_dataclass(value) else {option_name(*here): value}
    return found


def run(argv: list[str]) -> int:
    """Print the presets and scales, or the settings of one preset."""
    parser = OneLineParser(
        prog="gdi presets", description="List the presets and scales, or the settings of one preset."
    )
    parser.add_argument("preset", nargs="?", metavar="PRESET", help=f"one of {', '.join(PRESETS)}")
    parser.add_argument("--env", default="", help="show the values for this environment, at the scale that fits it")
    parser.add_argument("--scale", help=f"show the values at this scale: {', '.join(SCALES)} (default: paper)")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    args = parser.parse_args(argv)
    scale = args.scale or (None if args.env else "paper")
    if args.preset is not None:
        configs = {name: make_config(name, args.env, scale=scale) for name in (DEFAULT_PRESET, args.preset)}
        _print_preset(configs[args.preset], configs[DEFAULT_PRESET], as_json=args.json)
        return 0
    base = make_config(DEFAULT_PRESET, args.env, scale=scale)
    presets = {name: changes(base, make_config(name, args.env, scale=scale)) for name in PRESETS}
    scales = {name: changes(make_config(scale="paper"), make_config(scale=name)) for name in SCALES}
    if args.json:
        print(json.dumps({"presets": presets, "scales": scales}))
        return 0
    _print_table("Presets: the agents (gdi train PRESET)", {name: p.summary for name, p in PRESETS.items()})
    _print_table(
        "Scales: the sizes (--scale; default: the one that fits the environment)",
        {name: s.summary for name, s in SCALES.items()},
    )
    print(MORE)
    return 0


def _print_table(title: str, rows: Mapping[str, str]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("summary")
    for row in rows.items():
        table.add_row(*row)
    report_console().print(table)


def _print_preset(config: Config, base: Config, *, as_json: bool) -> None:
    """Print the settings of a preset that the base preset does not have, or has with another value."""
    ours, other = settings(config), settings(base)
    if as_json:
        print(json.dumps({"preset": config.preset, "scale": config.scale, "settings": ours}))
        return
    print(f"{config.preset} at scale {config.scale}: {PRESETS[config.preset].summary}")
    table = Table(box=SIMPLE_HEAD)
    same = config.preset == base.preset
    for heading in ("setting", config.preset, f"{base.preset} at this scale"):
        table.add_column(heading, overflow="fold")
    for option, value in ours.items():
        if option != "--env.id" and (same or option not in other or other[option] != value):
            table.add_row(option, show(value), show(other[option]) if option in other else "")
    report_console().print(table)
