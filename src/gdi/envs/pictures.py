"""Pictures of Gymnasium environments, by their render mode rgb_array."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from gdi.envs.forms import one_line
from gdi.errors import UserError, install_hint
from gdi.types import Array

PICTURES = "rgb_array"  # Gymnasium's render mode
DEFAULT_FRAMES_PER_SECOND = 30


def frames_per_second(env: Any) -> int:
    metadata = getattr(env, "metadata", None) or {}
    return int(metadata.get("render_fps") or DEFAULT_FRAMES_PER_SECOND)


def check_pictures(env_id: str, env: Any) -> None:
    """Raise UserError if the environment has no pictures."""
    modes = (getattr(env, "metadata", None) or {}).get("render_modes") or ()
    if PICTURES not in modes or not hasattr(env, "envs"):
        env.close()
        has = f"only {', '.join(modes)}" if modes else "none"
        raise UserError(
            f"{env_id} cannot be drawn: it needs the render mode {PICTURES} and has {has}. Add it to the "
            "environment's metadata and render()."
        )


def picture(env_id: str, env: Any) -> Array:
    """Return a picture of a single environment as it is now, [height, width, 3] bytes."""
    try:
        found = np.asarray(env.render())
    except gymnasium.error.DependencyNotInstalled as error:
        raise UserError(f"{env_id} cannot be drawn: {one_line(error)}: {install_hint('video')}.") from None
    if found.ndim != 3 or found.shape[-1] != 3 or found.dtype != np.uint8:
        raise UserError(
            f"{env_id} cannot be drawn: render() returned {found.dtype} of shape {found.shape}, not bytes of shape "
            "(height, width, 3)."
        )
    return found
