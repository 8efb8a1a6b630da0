"""How many cores this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(asked: int) -> int:
    """As many threads as asked for, at most one per core; 0 asks for them all."""
    return min(asked or available_cores(), available_cores())
