"""How θ travels between processes, and the device on which one uses it."""

from __future__ import annotations

import ray
import torch
from torch import Tensor

from gdi.config import Config
from gdi.runtime.parts import resolve_device
from gdi.runtime.ray.processes import Arrays


def to_arrays(params: dict[str, Tensor]) -> Arrays:
    """θ as NumPy arrays, which Ray writes to shared memory without pickling them."""
    return {name: value.numpy() for name, value in params.items()}


def to_tensors(arrays: Arrays) -> dict[str, Tensor]:
    return {name: torch.tensor(value) for name, value in arrays.items()}


def device_here(config: Config) -> torch.device:
    """The GPU that Ray gave this process, if it gave one and the config does not say cpu.

    A process that was given none may still see them.
    """
    given = ray.get_runtime_context().get_accelerator_ids().get("GPU")
    return resolve_device("auto" if given and config.run.device != "cpu" else "cpu")
