"""The arithmetic of the torsos: float32, or bfloat16 computed from float32 weights."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager, nullcontext

import torch


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which the layers of a torso compute in this precision, also backward.

    Rounded weights are not cached, because each is used once and parallel chunks should share nothing.
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def torso_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype that a layer computes in, so that its input needs no second conversion."""
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32


def has_native_bfloat16(device: torch.device) -> bool:
    """Return False if bfloat16 would be emulated, which is slower than float32.

    Return True also if we cannot tell.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    # AVX-512 alone is not enough. These names are private to torch and may disappear.
    asked = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return None in asked or any(bool(has()) for has in asked if has is not None)


def precision_warning(precision: str, device: torch.device) -> str:
    if precision == "bfloat16" and not has_native_bfloat16(device):
        return "This machine has no native bfloat16: --run.precision bfloat16 is emulated and slower than float32."
    return ""
