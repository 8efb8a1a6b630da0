"""The manifest of a checkpoint: its format, the SHA-256 of its files, and those of the run's config and logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gdi.errors import UserError
from gdi.runtime.storage import read_json
from gdi.runtime.upgrade import FORMAT

TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"


class CorruptCheckpointError(Exception):
    """A folder that is not a complete checkpoint; the message says why."""


class Facts(NamedTuple):
    """What a checkpoint knows about the rest of its run folder. Those of earlier versions know nothing."""

    config: str | None = None  # the SHA-256 of config.json
    logs: dict[str, str] = {}  # noqa: RUF012  # the SHA-256 of each log up to this checkpoint; never written to


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest; a damaged one is a CorruptCheckpointError."""
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict):
        raise CorruptCheckpointError(f"{MANIFEST} is not an object")
    found, digests = manifest.get("format"), manifest.get("sha256")
    if type(found) is not int or found < 1:
        raise CorruptCheckpointError(f"format {found!r} is not valid")
    if found > FORMAT:
        raise UserError(f"{folder} has format {found}, and this version of gdi reads up to {FORMAT}: update gdi.")
    if not isinstance(digests, dict) or not {TENSORS, STATE} <= set(digests):
        raise CorruptCheckpointError(f"{MANIFEST} lacks the checksum of {TENSORS} or {STATE}")
    # A damaged name of a fact must not read as its absence.
    more = set(manifest) - {"format", "sha256"}
    if more not in (set(), set(Facts._fields)) or not isinstance(manifest.get("logs", {}), dict):
        raise CorruptCheckpointError(f"{MANIFEST} has the fields {', '.join(sorted(manifest))}")
    return manifest


def read_facts(folder: Path) -> Facts:
    """Return the facts of a complete checkpoint."""
    manifest = read_manifest(folder)
    return Facts(manifest.get("config"), manifest.get("logs", {}))
