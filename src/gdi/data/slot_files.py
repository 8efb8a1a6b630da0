"""The files of a sampled replay: one per slot, in the folder of a checkpoint.

The name of a file says the number of its slot and how many windows are in it. Files of one name in two checkpoints of
a run are therefore equal, and a later checkpoint links the file of the one before.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from safetensors.numpy import load_file, save

from gdi.data.base import SavedFiles
from gdi.types import Array

NAME = re.compile(r"slot-(\d+)-(\d+)\.safetensors")


def slot_name(number: int, windows: int) -> str:
    return f"slot-{number:09d}-{windows:05d}.safetensors"


def is_slot_name(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def slot_of(name: str) -> tuple[int, int]:
    """Return the number of a file's slot, and how many windows are in it."""
    found = NAME.fullmatch(name)
    assert found is not None
    return int(found[1]), int(found[2])


def read_slot(path: Path) -> dict[str, Array]:
    return load_file(path)


def write_slot(path: Path, arrays: dict[str, Array]) -> str:
    """Write a slot to the disk, and return its SHA-256."""
    data = save(arrays)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(data).hexdigest()


def link_slot(before: SavedFiles, folder: Path, name: str) -> bool:
    """Put the file of an earlier checkpoint into this folder as well; return False if it is gone.

    It is copied where the disk has no hard links.
    """
    try:
        os.link(before.folder / name, folder / name)
    except FileNotFoundError:
        return False
    except OSError:
        shutil.copyfile(before.folder / name, folder / name)
        with (folder / name).open("rb+") as file:
            os.fsync(file.fileno())
    return True
