"""The cores that this process may use, and the number of torch threads of a thread."""

from __future__ import annotations

import os
import threading

_LOCK = threading.Lock()


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(asked: int) -> int:
    """Return the requested number of threads, at most one per core; 0 means all cores."""
    return min(asked or available_cores(), available_cores())


def set_torch_threads(count: int) -> None:
    """Set the number of torch threads of the calling thread, independent of other threads.

    ``set_num_threads`` also changes every thread that has not yet read its number. Reading the number fixes it.
    """
    import torch  # imported here, because scores and theory count cores without torch

    with _LOCK:
        torch.set_num_threads(count)
        torch.get_num_threads()
