"""Writes a file of arrays in the format of safetensors, which the library reads.

The library copies every array before it writes, and its file would have to be read again for the hash.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from gdi.types import Array

KINDS = {"b": "BOOL", "f": "F", "i": "I", "u": "U"}  # the size in bits follows, except after BOOL


def write_tensors(path: Path, tensors: dict[str, Array]) -> str:
    """Write the arrays, and return the SHA-256 of the file."""
    # The widest come first, because then each begins at a multiple of its own width.
    arrays = sorted(tensors.items(), key=lambda item: -item[1].itemsize)
    header, end = {}, 0
    for name, array in arrays:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": _dtype_name(name, array), "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    parts: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    parts += [_bytes_of(array) for _, array in arrays]
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
            digest.update(part)
    return digest.hexdigest()


def _dtype_name(name: str, array: Array) -> str:
    kind = array.dtype.kind
    if kind not in KINDS:
        raise TypeError(f"a checkpoint cannot hold an array of {array.dtype} at {name}")
    return KINDS[kind] if kind == "b" else f"{KINDS[kind]}{8 * array.itemsize}"


def _bytes_of(array: Array) -> memoryview:
    """Return the little-endian bytes of an array. They are not copied if they are in this order already."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C").reshape(-1).view(np.uint8).data
