"""Checkpoints: atomic, checksummed, and read without executing anything.

A checkpoint is a folder ``step-<steps>-update-<updates>``. ``tensors.safetensors`` holds all arrays, ``state.json`` the
rest with references to the arrays, and ``manifest.json`` the SHA-256 of both (``runtime.manifest``). A sampled replay
adds a file per slot, which later checkpoints link. The manifest has their SHA-256 as well.

The folder is written under another name, synced to disk and renamed, so a folder under its final name is complete.
``best.json`` names the checkpoint with the best evaluation.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file

from gdi.data import SavedFiles
from gdi.data.slot_files import is_slot_name
from gdi.errors import UserError
from gdi.runtime.manifest import (
    MANIFEST,
    STATE,
    TENSORS,
    CorruptCheckpointError,
    Facts,
    read_facts,
    read_manifest,
)
from gdi.runtime.storage import open_regular, read_json, replace_file
from gdi.runtime.tensor_file import write_tensors
from gdi.runtime.upgrade import FORMAT, upgrade_state
from gdi.types import State

BEST = "best.json"
REFERENCE = "__tensor__"
PLAIN = (bool, int, float, str)
# The names that a run gives to its checkpoints. Other folders, such as a copy made by hand, are not its own.
NAME = re.compile(r"step-\d{12}-update-\d{9}(-\d{3,})?")
# save_replay(folder, before) writes the replay's files into a folder, or links those of an earlier checkpoint.
SaveReplay = Callable[[Path, "SavedFiles | None"], SavedFiles]


def flatten(tree: Any, path: str, tensors: dict[str, Any]) -> Any:
    """Replace every array in the tree by a reference, and collect the arrays under their paths."""
    if tree is None or type(tree) in PLAIN:  # most are
        return tree
    if isinstance(tree, torch.Tensor):
        tree = tree.detach().cpu().numpy()
    if isinstance(tree, np.ndarray):
        tensors[path] = tree
        return {REFERENCE: path}
    if isinstance(tree, dict):
        return {str(key): flatten(value, f"{path}/{key}", tensors) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [flatten(value, f"{path}/{i}", tensors) for i, value in enumerate(tree)]
    if isinstance(tree, np.generic):
        return tree.item()
    if isinstance(tree, PLAIN):
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
    with os.fdopen(open_regular(path), "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def write_checkpoint(
    folder: Path,
    state: State,
    save_files: Callable[[Path], SavedFiles] | None = None,
    facts: Facts | None = None,
) -> None:
    """Write ``folder``, which must not exist, completely or not at all; ``save_files`` adds those of the replay."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    tensors: dict[str, Any] = {}
    skeleton = flatten(state, "", tensors)
    digests = {TENSORS: write_tensors(part / TENSORS, tensors)}
    text = json.dumps(skeleton).encode()
    (part / STATE).write_bytes(text)
    digests[STATE] = hashlib.sha256(text).hexdigest()
    if save_files is not None:
        digests |= save_files(part).sha256
    known = {} if facts is None else facts._asdict()
    (part / MANIFEST).write_text(json.dumps({"format": FORMAT, "sha256": digests, **known}, indent=2))
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
        manifest = read_manifest(folder)
        for name, digest in manifest["sha256"].items():
            if is_slot_name(name) and not replay:
                continue
            if not (name in (TENSORS, STATE) or is_slot_name(name)) or _digest(folder / name) != digest:
                raise CorruptCheckpointError(f"{name} does not match its checksum")
        skeleton = read_json(folder / STATE)
        state = upgrade_state(unflatten(skeleton, load_file(folder / TENSORS)), manifest["format"])
    except (FileNotFoundError, ValueError, KeyError, AttributeError, TypeError, SafetensorError) as error:
        raise CorruptCheckpointError(f"{type(error).__name__}: {error}") from error
    except RecursionError:
        raise CorruptCheckpointError(f"{STATE} is nested too deeply") from None
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
        self.facts = Facts()  # of the checkpoint that was read last

    def _all(self) -> list[Path]:
        """Return all checkpoints, the newest last."""
        return sorted(path for path in self._folder.glob("step-*") if path.is_dir())

    def save(
        self,
        steps: int,
        updates: int,
        state: State,
        *,
        best: bool = False,
        save_replay: SaveReplay | None = None,
        facts: Facts | None = None,
    ) -> Path:
        """Write a checkpoint and remove old ones; ``save_replay`` writes or links the replay's files."""
        path = self._new_folder(f"step-{steps:012d}-update-{updates:09d}")
        self._remove_partial()
        before = self.replay
        try:
            write_checkpoint(
                path, state, None if save_replay is None else lambda part: save_replay(part, before), facts
            )
        except BaseException:
            self._remove_partial()  # so that a full disk has room again
            raise
        self.replay = replay_files(path)
        if best:
            self.mark_best(path)
        self._prune(path)
        return path

    def mark_best(self, path: Path) -> None:
        """Record this checkpoint as the one with the best evaluation so far."""
        if path.is_dir():  # not if someone removed it during its evaluation
            replace_file(self._folder / BEST, json.dumps({"checkpoint": path.name}).encode())

    def _new_folder(self, stem: str) -> Path:
        """Return a new folder next to existing ones of the same step.

        A resumed run that is stopped at once saves the same step again and must not overwrite it.
        """
        same = sorted(path.name for path in self._folder.glob(f"{stem}*") if NAME.fullmatch(path.name))
        if not same:
            return self._folder / stem
        number = int(same[-1].removeprefix(stem).lstrip("-") or 1) + 1
        return self._folder / f"{stem}-{number:03d}"

    def _remove_partial(self) -> None:
        """Remove the partial checkpoints of a session that was killed while writing."""
        for part in self._folder.glob(".step-*.part"):
            shutil.rmtree(part, ignore_errors=True)

    def _best_name(self) -> str | None:
        """Return the name in ``best.json``, or None if there is none; ValueError says that it is damaged."""
        try:
            name = read_json(self._folder / BEST)["checkpoint"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise ValueError(f"{self._folder / BEST} is unreadable: the best checkpoint is unknown") from error
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError(f"{self._folder / BEST} names no checkpoint: the best one is unknown")
        return name

    def _prune(self, new: Path) -> None:
        """Remove all but the newest checkpoints, the best one, and those in use."""
        try:
            best_name = self._best_name()
        except ValueError as error:
            self._warn(f"{error}.")
            best_name = None
        own = [path for path in self._all() if NAME.fullmatch(path.name)]
        for old in own[: -self._keep]:
            # The new checkpoint is not always among the last. A skipped, damaged checkpoint may have a later name.
            if old.name != best_name and old not in (new, self.protected):
                shutil.rmtree(old)

    def newest(self, *, replay: bool = True) -> State | None:
        """Return the newest complete checkpoint, or None if there never was one; warn about damaged ones."""
        found = self._all()
        for path in reversed(found):
            try:
                state = read_checkpoint(path, replay=replay)
                self.replay, self.facts = replay_files(path), read_facts(path)
                return state
            except CorruptCheckpointError as error:
                self._warn(f"checkpoint {path.name} is damaged ({error}): trying the previous one.")
        if found:
            raise UserError(f"every checkpoint in {self._folder} is damaged: start a new run.")
        return None

    def best(self) -> State:
        """Return the checkpoint with the best evaluation."""
        try:
            name = self._best_name()
        except ValueError as error:
            raise UserError(f"{error}: leave out --best to use the newest one.") from None
        if name is None:
            raise UserError(f"{self._folder} has no best checkpoint yet: no evaluation has finished.")
        try:
            state = read_checkpoint(self._folder / name, replay=False)
            self.facts = read_facts(self._folder / name)
            return state
        except CorruptCheckpointError as error:
            raise UserError(f"the best checkpoint {self._folder / name} is damaged: {error}.") from None
