"""The videos in a run folder, embedded up to a limit."""

from __future__ import annotations

import base64
from pathlib import Path

from gdi.report.document import Block, Media, Section, Text
from gdi.report.material import Material, run_label

TYPES = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif", ".png": "image/png"}
MOST_BYTES = 8 * 2**20


def media(material: Material) -> Section | None:
    """Embed videos and pictures while they fit; name those that do not."""
    blocks: list[Block] = []
    used = 0
    for run in material.runs:
        for path in _files(run.folder):
            size = path.stat().st_size
            told = f"{run_label(material, run)}: {path.name}"
            if used + size > MOST_BYTES:
                blocks.append(Text(f"{told} has {size / 1e6:.1f} MB and is not embedded.", "note"))
                continue
            used += size
            kind = TYPES[path.suffix.lower()]
            source = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
            blocks.append(Media("video" if kind.startswith("video") else "image", source, told))
    return Section("videos", "Videos", tuple(blocks)) if blocks else None


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in TYPES and path.is_file())
