"""``gdi presets``: list the presets and scales, and what each changes."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from gdi.cli.parsing import JSON_HELP, OneLineParser
from gdi.cli.printing import report_console
from gdi.config import Config, differences
from gdi.presets import PRESETS, SCALES, make_config


def changes(base: Config, other: Config) -> dict[str, Any]:
    """Return the fields that differ with their new values, without the names of preset and scale."""
    return {name: new for name, _, new in differences(base, other) if name not in ("preset", "scale")}


def run(argv: list[str]) -> int:
    """Print the presets and scales."""
    parser = OneLineParser(prog="gdi presets", description="List the presets and scales, and their differences.")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    args = parser.parse_args(argv)
    base = make_config("gdi-i3", scale="paper")
    presets = {name: changes(base, make_config(name, scale="paper")) for name in PRESETS}
    scales = {name: changes(base, make_config("gdi-i3", scale=name)) for name in SCALES}
    if args.json:
        print(json.dumps({"presets": presets, "scales": scales}))
        return 0
    console = report_console()
    for title, entries, summaries in (
        ("Presets: the agents (gdi train PRESET)", presets, PRESETS),
        ("Scales: the sizes (--scale; default: the one that fits the environment)", scales, SCALES),
    ):
        table = Table(title=title, title_justify="left", title_style="bold")
        table.add_column("name", style="bold", no_wrap=True)
        table.add_column("what it is")
        table.add_column("differences from gdi-i3 at scale paper", overflow="fold")
        for name, diff in entries.items():
            lines = "\n".join(f"{field} = {value}" for field, value in diff.items())
            table.add_row(name, summaries[name].summary, lines or "-", end_section=True)
        console.print(table)
    return 0
