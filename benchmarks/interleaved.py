"""Measures several programs in turns.

A machine that slows down for a while therefore slows down all of them.
"""

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
Measurements = dict[str, list[dict[str, Any]]]


def run_interleaved(commands: Mapping[str, list[str]], rounds: int) -> Measurements:
    """Run each command once per round, in its own process; its last line of output is one JSON object."""
    found: Measurements = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            told = subprocess.run([sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True).stdout
            found[name].append(json.loads(told.splitlines()[-1]))
            print(f"round {number + 1}: {name} {found[name][-1][SPEED]:,.0f} steps/s", file=sys.stderr)
    return found


def median(found: Measurements, name: str, key: str = SPEED) -> float:
    return statistics.median(result[key] for result in found[name])


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
