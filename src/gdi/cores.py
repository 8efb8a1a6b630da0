"""How many cores this process may use, and torch threads for threads of our own."""

from __future__ import annotations

import os
import threading

_LOCK = threading.Lock()


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(asked: int) -> int:
    """As many threads as asked for, at most one per core; 0 asks for them all."""
    return min(asked or available_cores(), available_cores())


def keep_torch_threads(count: int) -> None:
    """Give the calling thread its own number of torch threads, whatever other threads set before or after.

    ``set_num_threads`` also sets the default of every thread that has not asked for its number yet; asking settles it.
    """
    import torch  # only here: scores and theory know their cores without torch

    with _LOCK:
        torch.set_num_threads(count)
        torch.get_num_threads()
