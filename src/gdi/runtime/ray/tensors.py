"""The transfer of θ between processes, and the device that uses it."""

from __future__ import annotations

import ray
import torch
from torch import Tensor

from gdi.config import Config
from gdi.runtime.factories import resolve_device
from gdi.runtime.ray.processes import Arrays


def to_arrays(params: dict[str, Tensor]) -> Arrays:
    """Return θ as NumPy arrays, which Ray writes to shared memory without pickling."""
    return {name: value.numpy() for name, value in params.items()}


def to_tensors(arrays: Arrays) -> dict[str, Tensor]:
    return {name: torch.tensor(value) for name, value in arrays.items()}


def assigned_device(config: Config) -> torch.device:
    """Return the GPU that Ray assigned to this process, or the CPU.

    The CPU is used if there is no assigned GPU or the config says cpu.

    A process without an assigned GPU may still see one.
    """
    given = ray.get_runtime_context().get_accelerator_ids().get("GPU")
    return resolve_device("auto" if given and config.run.device != "cpu" else "cpu")
