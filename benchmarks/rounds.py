"""Measures several programs in turns, so that a machine that slows down for a while slows all of them."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

SPEED = "steps_per_second"
Found = dict[str, list[dict[str, Any]]]


def in_turns(commands: Mapping[str, list[str]], rounds: int) -> Found:
    """Run each command once a round, in a process of its own; its last line of output is one JSON object."""
    found: Found = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            told = subprocess.run([sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True).stdout
            found[name].append(json.loads(told.splitlines()[-1]))
            print(f"round {number + 1}: {name} {found[name][-1][SPEED]:,.0f} steps/s", file=sys.stderr)
    return found


def median(found: Found, name: str, key: str = SPEED) -> float:
    return statistics.median(result[key] for result in found[name])


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
