#!/usr/bin/env python
"""Makes the pictures of docs/gallery.md: ``make gallery``, about a quarter of an hour on two cores.

    python tools/gallery.py [--runs DIR] [--out DIR]

A run that is missing is trained, and one that was interrupted continues. The pictures are drawn from the run folders.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console

from gdi.api import load
from gdi.cli.main import main as gdi
from gdi.cli.report import explored_states
from gdi.report.document import Figure, Section, View
from gdi.report.material import make_material
from gdi.report.png import DPI, draw
from gdi.report.runs import read_run
from gdi.report.sections.control import control
from gdi.report.sections.curves import curves
from gdi.report.terminal import dashboard

BREAKOUT, SEAQUEST = "MinAtar/Breakout-v0", "MinAtar/Seaquest-v0"
TERMINAL_SIZES = ((80, 36), (200, 36))
VIDEO_FRAME = 0.6  # of the episode


@dataclass(frozen=True)
class Training:
    """A run of the gallery."""

    folder: str
    preset: str
    env: str
    steps: int


FIRST = Training("demo", "gdi-i3", BREAKOUT, 600_000)  # the run of make demo
OTHERS = (
    Training("gallery-dqn", "dqn", BREAKOUT, 150_000),
    Training("gallery-ppo", "ppo", BREAKOUT, 200_000),
    Training("gallery-impala", "impala", BREAKOUT, 200_000),
)
EXPLORERS = (
    Training("gallery-seaquest-gdi-i3", "gdi-i3", SEAQUEST, 600_000),
    Training("gallery-seaquest-boltzmann", "boltzmann", SEAQUEST, 600_000),
)


def train(training: Training, runs: Path) -> Path:
    """Return the folder of a finished run."""
    folder = runs / training.folder
    argv = ["train", training.preset, "--env", training.env, "--steps", str(training.steps), "--seed", "1"]
    if gdi([*argv, "--run-dir", str(folder), "--resume"]):
        sys.exit(1)
    return folder


def save(canvas: Any, path: Path) -> None:
    canvas.savefig(path, dpi=DPI)


def stacked(views: list[View], height: int, path: Path) -> None:
    """Write several views one below the other."""
    images = []
    for view in views:
        save(draw(view, height), path)
        images.append(np.asarray(Image.open(path).convert("RGB")))
    Image.fromarray(np.concatenate(images)).save(path, optimize=True)


def figures(section: Section | None) -> list[Figure]:
    return [block for block in section.blocks if isinstance(block, Figure)] if section else []


def draw_control(folder: Path, path: Path) -> None:
    """Draw what E did to each axis, or the λ of the episodes if it does not learn."""
    (figure, *_) = figures(control(make_material([read_run(folder)])))
    views = [view for key, view in figure.views.items() if len(key) < 3 or key[2] == "probability"]
    stacked(views, 260, path)


def draw_terminal(folder: Path, size: tuple[int, int], path: Path) -> None:
    """Draw the screen of gdi watch. The font is that of the viewer, so that the picture asks for no network."""
    width, height = size
    console = Console(width=width, file=StringIO(), record=True, force_terminal=True, color_system="truecolor")
    console.print(dashboard(read_run(folder), width, height))
    text = console.export_svg(title="gdi watch")
    text = re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def draw_video_frame(folder: Path, path: Path) -> None:
    """Record an episode with its strip beside the run, and keep one frame."""
    import imageio_ffmpeg

    video = folder / "episode.mp4"
    video.unlink(missing_ok=True)
    load(folder).record(video, strip=True)
    reader = imageio_ffmpeg.read_frames(str(video))
    width, height = next(reader)["size"]
    frames = list(reader)
    frame = np.frombuffer(frames[int(VIDEO_FRAME * len(frames))], np.uint8).reshape(height, width, 3)
    Image.fromarray(frame).save(path, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs (default: runs)")
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder of the pictures")
    args = parser.parse_args()
    out: Path = args.out
    out.mkdir(parents=True, exist_ok=True)
    first = train(FIRST, args.runs)
    others = [train(training, args.runs) for training in OTHERS]
    explorers = [train(training, args.runs) for training in EXPLORERS]

    draw_control(first, out / "gallery-gdi-i3.png")
    for training, folder in zip(OTHERS, others, strict=True):
        draw_control(folder, out / f"gallery-{training.preset}.png")
    (figure, *_) = figures(curves(make_material([read_run(folder) for folder in (first, *others)])))
    save(draw(next(iter(figure.views.values())), figure.height), out / "gallery-curves.png")
    for size in TERMINAL_SIZES:
        draw_terminal(first, size, out / f"gallery-watch-{size[0]}.svg")
    draw_video_frame(first, out / "gallery-video.png")
    (figure,) = figures(explored_states(explorers))
    save(draw(figure.views[()], figure.height), out / "gallery-tsne.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
