"""Checkpoints: atomic, checksummed, and read without executing anything.

A checkpoint is a folder ``step-<steps>-update-<updates>``. ``tensors.safetensors`` holds all arrays, ``state.json`` the
rest with references to the arrays, and ``manifest.json`` the SHA-256 of both. A sampled replay adds a file per slot,
which later checkpoints link. The manifest has their SHA-256 as well.

The folder is written under another name, synced to disk and renamed, so a folder under its final name is complete.
``best.json`` names the checkpoint with the best evaluation.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from gdi.data import SavedFiles
from gdi.data.slot_files import is_slot_name
from gdi.errors import UserError
from gdi.runtime.upgrade import FORMAT, upgrade_state
from gdi.types import State

TENSORS, STATE, MANIFEST, BEST = "tensors.safetensors", "state.json", "manifest.json", "best.json"
REFERENCE = "__tensor__"
# save_replay(folder, before) writes the replay's files into a folder, or links those of an earlier checkpoint.
SaveReplay = Callable[[Path, "SavedFiles | None"], SavedFiles]


class CorruptCheckpointError(Exception):
    """A folder that is not a complete checkpoint; the message says why."""


def flatten(tree: Any, path: str, tensors: dict[str, Any]) -> Any:
    """Replace every array in the tree by a reference, and collect the arrays under their paths."""
    if isinstance(tree, torch.Tensor):
        tree = tree.detach().cpu().numpy()
    if isinstance(tree, np.ndarray):
        tensors[path] = tree if tree.flags.c_contiguous else tree.copy(order="C")
        return {REFERENCE: path}
    if isinstance(tree, dict):
        return {str(key): flatten(value, f"{path}/{key}", tensors) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [flatten(value, f"{path}/{i}", tensors) for i, value in enumerate(tree)]
    if isinstance(tree, np.generic):
        return tree.item()
    if tree is None or isinstance(tree, (bool, int, float, str)):
        return tree
    raise TypeError(f"a checkpoint cannot hold {type(tree).__name__} at {path}")


def unflatten(tree: Any, tensors: dict[str, Any]) -> Any:
    """Invert ``flatten``; tensors come back as NumPy arrays."""
    if isinstance(tree, dict):
        if set(tree) == {REFERENCE}:
            return tensors[tree[REFERENCE]]
        return {key: unflatten(value, tensors) for key, value in tree.items()}
    if isinstance(tree, list):
        return [unflatten(value, tensors) for value in tree]
    return tree


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot sync a folder
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def write_checkpoint(folder: Path, state: State, save_files: Callable[[Path], SavedFiles] | None = None) -> None:
    """Write ``folder``, which must not exist, completely or not at all; ``save_files`` adds those of the replay."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    tensors: dict[str, Any] = {}
    skeleton = flatten(state, "", tensors)
    save_file(tensors, part / TENSORS)
    (part / STATE).write_text(json.dumps(skeleton))
    files = {} if save_files is None else save_files(part).sha256
    digests = {**{name: _digest(part / name) for name in (TENSORS, STATE)}, **files}
    (part / MANIFEST).write_text(json.dumps({"format": FORMAT, "sha256": digests}, indent=2))
    for name in (TENSORS, STATE, MANIFEST):
        _sync(part / name)
    _sync(part)
    part.rename(folder)
    _sync(folder.parent)


def replay_files(folder: Path) -> SavedFiles:
    """Return the files of the replay in a complete checkpoint."""
    digests: dict[str, str] = json.loads((folder / MANIFEST).read_text())["sha256"]
    return SavedFiles(folder, {name: digest for name, digest in digests.items() if is_slot_name(name)})


def read_checkpoint(folder: Path, *, replay: bool = True) -> State:
    """Return the state after checking all digests; CorruptCheckpointError says what is wrong.

    An agent needs no replay: without ``replay`` its files are not read.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        found = manifest.get("format")
        if not isinstance(found, int) or found < 1:
            raise CorruptCheckpointError(f"format {found!r} is not valid")
        if found > FORMAT:
            raise UserError(f"{folder} has format {found}, and this version of gdi reads up to {FORMAT}: update gdi.")
        for name, digest in manifest["sha256"].items():
            if is_slot_name(name) and not replay:
                continue
            if not (name in (TENSORS, STATE) or is_slot_name(name)) or _digest(folder / name) != digest:
                raise CorruptCheckpointError(f"{name} does not match its checksum")
        skeleton = json.loads((folder / STATE).read_text())
        state = upgrade_state(unflatten(skeleton, load_file(folder / TENSORS)), found)
    except (FileNotFoundError, ValueError, KeyError, AttributeError, SafetensorError) as error:
        raise CorruptCheckpointError(f"{type(error).__name__}: {error}") from error
    # The disk or its permissions are at fault, not the checkpoint, which may become readable again.
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror or error}.") from None
    return state


class CheckpointStore:
    """The ``checkpoints`` folder of a run: the newest few checkpoints, and the best one."""

    def __init__(self, folder: Path, keep: int, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._keep = keep
        self._warn = warn
        self.protected: Path | None = None  # kept even if it is old, because it is being evaluated
        self.replay: SavedFiles | None = None  # the replay's files in the checkpoint that was read or written last

    def _all(self) -> list[Path]:
        """Return all checkpoints, the newest last."""
        return sorted(path for path in self._folder.glob("step-*") if path.is_dir())

    def save(
        self, steps: int, updates: int, state: State, *, best: bool = False, save_replay: SaveReplay | None = None
    ) -> Path:
        """Write a checkpoint and remove old ones; ``save_replay`` writes or links the replay's files."""
        path = self._new_folder(f"step-{steps:012d}-update-{updates:09d}")
        self._remove_partial()
        before = self.replay
        write_checkpoint(path, state, None if save_replay is None else lambda part: save_replay(part, before))
        self.replay = replay_files(path)
        if best:
            self.mark_best(path)
        best_name = self._best_name()
        for old in self._all()[: -self._keep]:
            # The new checkpoint is not always among the last. A skipped, damaged checkpoint may have a later name.
            if old.name != best_name and old not in (path, self.protected):
                shutil.rmtree(old)
        return path

    def mark_best(self, path: Path) -> None:
        """Record this checkpoint as the one with the best evaluation so far."""
        part = self._folder / f".{BEST}.part"
        part.write_text(json.dumps({"checkpoint": path.name}))
        _sync(part)
        os.replace(part, self._folder / BEST)

    def _new_folder(self, stem: str) -> Path:
        """Return a new folder next to existing ones of the same step.

        A resumed run that is stopped at once saves the same step again and must not overwrite it.
        """
        same = sorted(path.name for path in self._folder.glob(f"{stem}*"))
        if not same:
            return self._folder / stem
        number = int(same[-1].removeprefix(stem).lstrip("-") or 1) + 1
        return self._folder / f"{stem}-{number:03d}"

    def _remove_partial(self) -> None:
        """Remove the partial checkpoints of a session that was killed while writing."""
        for part in self._folder.glob(".step-*.part"):
            shutil.rmtree(part)

    def _best_name(self) -> str | None:
        try:
            name = json.loads((self._folder / BEST).read_text())["checkpoint"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            self._warn(f"{self._folder / BEST} is unreadable: the best checkpoint is unknown.")
            return None
        return str(name)

    def newest(self, *, replay: bool = True) -> State | None:
        """Return the newest complete checkpoint, or None if there never was one; warn about damaged ones."""
        found = self._all()
        for path in reversed(found):
            try:
                state = read_checkpoint(path, replay=replay)
                self.replay = replay_files(path)
                return state
            except CorruptCheckpointError as error:
                self._warn(f"checkpoint {path.name} is damaged ({error}): trying the previous one.")
        if found:
            raise UserError(f"every checkpoint in {self._folder} is damaged: start a new run.")
        return None

    def best(self) -> State:
        """Return the checkpoint with the best evaluation."""
        name = self._best_name()
        if name is None:
            raise UserError(f"{self._folder} has no best checkpoint yet: no evaluation has finished.")
        try:
            return read_checkpoint(self._folder / name, replay=False)
        except CorruptCheckpointError as error:
            raise UserError(f"the best checkpoint {self._folder / name} is damaged: {error}.") from None
