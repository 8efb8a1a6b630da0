"""Small pictures of observations, for the states on a map."""

from __future__ import annotations

import base64
import io

import numpy as np

from gdi.envs.minatar import BACKGROUND, COLORS
from gdi.types import Array

SIDE = 84  # pixels, of the longer side at least


def picture(obs: Array) -> Array | None:
    """Return an observation as bytes, [height, width, 3], or None if it is no image."""
    if obs.ndim == 2:
        return np.repeat(obs.astype(np.uint8)[..., None], 3, axis=-1)
    if obs.ndim != 3:
        return None
    if obs.dtype == np.bool_:
        return channels(obs)
    if obs.shape[-1] in (1, 3):
        return np.broadcast_to(obs.astype(np.uint8), (*obs.shape[:2], 3))
    return np.repeat(obs.mean(-1).astype(np.uint8)[..., None], 3, axis=-1)


def channels(obs: Array) -> Array:
    """Return boolean channels in colors; the last one that is on is seen."""
    image = np.broadcast_to(BACKGROUND, (*obs.shape[:2], 3)).copy()
    for number in range(obs.shape[-1]):
        image[obs[..., number]] = COLORS[number % len(COLORS)]
    return image


def data_url(image: Array) -> str:
    """Return a picture, enlarged by a whole number, as the URL of a PNG file."""
    from PIL import Image

    factor = max(1, SIDE // max(image.shape[:2]))
    file = io.BytesIO()
    Image.fromarray(image.repeat(factor, 0).repeat(factor, 1)).save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
