"""In what arithmetic the torsos compute: float32, or bfloat16 with float32 weights behind it."""

from __future__ import annotations

import torch


def arithmetic(precision: str, device: torch.device) -> torch.autocast:
    """A context in which convolutions and dense layers compute in this precision, forward and on the way back.

    Rounded weights are not cached: each is used once, and chunks trained side by side should share nothing.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False)


def arithmetic_dtype(device: torch.device) -> torch.dtype:
    """What numbers are best made as on their way into such a layer, which would otherwise convert them again."""
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32


def precision_warning(precision: str, device: torch.device) -> str:
    """A sentence where bfloat16 would be imitated by float32 kernels: on x86 processors without AVX-512."""
    imitated = device.type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX2"
    if precision == "bfloat16" and imitated:
        return "This CPU has no bfloat16 arithmetic: --run.precision bfloat16 is slower than float32 here."
    return ""
