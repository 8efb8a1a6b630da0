"""In what arithmetic the torsos compute: float32, or bfloat16 with float32 weights behind it."""

from __future__ import annotations

import platform

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


def computes_bfloat16(device: torch.device) -> bool:
    """False where bfloat16 would be imitated, which is slower than float32; true, too, where that cannot be told."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    # AVX-512 alone is not enough. These names are torch's own, without a promise to stay.
    asked = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return None in asked or any(bool(has()) for has in asked if has is not None)


def precision_warning(precision: str, device: torch.device) -> str:
    if precision == "bfloat16" and not computes_bfloat16(device):
        return "There is no bfloat16 arithmetic here: --run.precision bfloat16 is imitated, and slower than float32."
    return ""
