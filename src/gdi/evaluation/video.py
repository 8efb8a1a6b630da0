"""Videos of episodes: every picture in color, with score, step and λ above it.

``check_path`` finds problems with the file before any episode is played. OpenCV and ffmpeg come with the extra
``video`` and are imported only for a video.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from gdi.envs.base import Beside
from gdi.envs.screen import Screen
from gdi.errors import UserError, install_hint
from gdi.types import Array

WIDTH = 480  # a picture is enlarged to about this width, and the text needs it
TEXT_LINES_PIXELS = 56  # height of the two lines of text above the image
DRAWABLE = {"α": "alpha", "β": "beta", "γ": "gamma", "ε": "eps", "λ": "lambda", "τ": "tau"}
BLOCK_PIXELS = 16  # H.264 encodes blocks of this size, so its multiples need no padding


class RecordedPlayer(Protocol):
    """The player of a video: a trained agent or a random one."""

    @property
    def named_index(self) -> dict[str, float] | None:
        """The index (λ) of the episode by the names of its components, or None if the player has none."""
        ...

    def caption(self) -> str:
        """Return the text above the image of the episode."""
        ...

    def reset(self) -> None: ...

    def choose(self, obs: Array, beside: Beside, reward: float = 0.0) -> int:
        """Return the number of an action, which counts from 0; ``obs`` is [1, ...]."""
        ...


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode of a video."""

    score: float
    length_steps: int
    length_frames: int  # pictures played, one per step or per emulator frame; the video also shows the first one
    truncated: bool
    index: dict[str, float] | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_path(path: Path) -> None:
    """Raise UserError if no video can be written to this path."""
    if path.suffix.lower() != ".mp4":
        raise UserError(f"{path} does not end in .mp4: choose an .mp4 file for the video.")
    try:
        if path.exists() or path.is_symlink():
            raise UserError(f"{path} already exists: choose another name for the video.")
        if not path.parent.is_dir():
            raise UserError(f"cannot write {path}, because there is no folder {path.parent}: create it first.")
        temporary_path(path).touch(exist_ok=False)
        temporary_path(path).unlink()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}.") from None
    try:
        import cv2  # noqa: F401
        import imageio_ffmpeg
    except ImportError as error:
        raise UserError(f"a video needs the package {error.name}: {install_hint('video')}.") from None
    try:
        imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:
        raise UserError(f"a video needs ffmpeg: install it, or {install_hint('video')}.") from None


def temporary_path(path: Path) -> Path:
    """Return where a video is written until it is complete.

    The file is in the same folder, so that the final rename is atomic.
    """
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def upscale(image_width: int) -> int:
    """Return the whole number of pixels that each pixel of a picture gets: 3 for Atari, 48 for MinAtar."""
    return max(1, round(WIDTH / image_width))


def video_size(image_shape: tuple[int, int, int]) -> tuple[int, int]:
    """Return the width and height in pixels for pictures of that shape, including the text above them."""
    factor = upscale(image_shape[1])
    width, height = max(WIDTH, factor * image_shape[1]), factor * image_shape[0] + TEXT_LINES_PIXELS
    return width + -width % BLOCK_PIXELS, height + -height % BLOCK_PIXELS


def drawable(text: str) -> str:
    """Replace the letters that some versions of OpenCV cannot draw."""
    for letter, name in DRAWABLE.items():
        text = text.replace(letter, name)
    return text.encode("ascii", "replace").decode()


def format_score(score: float) -> str:
    return f"{score:,.0f}" if score == round(score) else f"{score:,.1f}"


def draw(image: Array, score: float, step: int, text: str) -> Array:
    """Draw one frame of the video, [height, width, 3], with score, step and text above the enlarged picture."""
    import cv2

    width, height = video_size((image.shape[0], image.shape[1], 3))
    canvas = np.zeros((height, width, 3), np.uint8)
    factor = upscale(image.shape[1])
    picture_height, picture_width = factor * image.shape[0], factor * image.shape[1]
    left = (width - picture_width) // 2
    picture = cv2.resize(image, (picture_width, picture_height), interpolation=cv2.INTER_NEAREST)
    canvas[-picture_height:, left : left + picture_width] = picture
    font, white, gray = cv2.FONT_HERSHEY_SIMPLEX, (255, 255, 255), (190, 190, 190)
    cv2.putText(canvas, f"score {format_score(score)}", (8, 26), font, 0.8, white, 2, cv2.LINE_AA)
    steps = f"step {step:,}"
    (steps_width, _), _ = cv2.getTextSize(steps, font, 0.6, 1)
    cv2.putText(canvas, steps, (width - steps_width - 8, 26), font, 0.6, gray, 1, cv2.LINE_AA)
    cv2.putText(canvas, text, (8, 48), font, 0.5, gray, 1, cv2.LINE_AA)
    return canvas


class Mp4Writer:
    """An mp4 file (H.264, yuv420p) that gets its name only when it is complete.

    Use it as ``with Mp4Writer(...) as video``. An interrupted recording leaves no file, and a killed process leaves
    only the ``.part`` file.
    """

    def __init__(self, path: Path, size: tuple[int, int], frames_per_second: int) -> None:
        import imageio_ffmpeg

        self._path = path
        self._frames_per_second = frames_per_second
        self._part = temporary_path(path)
        self._frames = 0
        self._ffmpeg: Any = imageio_ffmpeg.write_frames(
            str(self._part),
            size,
            fps=frames_per_second,
            quality=None,  # -crf sets it
            codec="libx264",
            pix_fmt_out="yuv420p",
            macro_block_size=BLOCK_PIXELS,
            ffmpeg_log_level="error",
            output_params=["-crf", "18", "-preset", "veryfast", "-f", "mp4"],
        )
        self._ffmpeg.send(None)  # the first send starts ffmpeg

    def write(self, image: Array) -> None:
        try:
            self._ffmpeg.send(np.ascontiguousarray(image))
        except OSError:
            raise UserError(f"cannot write {self._path}, because ffmpeg stopped: check the disk space.") from None
        self._frames += 1

    def __enter__(self) -> Mp4Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._ffmpeg.close()  # this waits until ffmpeg has written everything
            if kind is None:
                self._finish()
        finally:
            self._part.unlink(missing_ok=True)

    def _finish(self) -> None:
        # We do not get ffmpeg's exit code, so check the length in the header, which ffmpeg writes last.
        length = length_seconds(self._part)
        if length is None or abs(length * self._frames_per_second - self._frames) > 1:
            raise UserError(f"the video {self._path} is incomplete and was not saved: check the disk space.")
        if self._path.exists():
            raise UserError(
                f"{self._path} was created during the recording, so the video was not saved: choose another name."
            )
        self._part.rename(self._path)


def length_seconds(path: Path) -> float | None:
    """Return the length in the header of an mp4 file, or None if the header cannot be read."""
    import imageio_ffmpeg

    reader = imageio_ffmpeg.read_frames(str(path))
    try:
        return float(next(reader)["duration"])
    except OSError:
        return None
    finally:
        reader.close()


class Below(Protocol):
    """A picture that is drawn below each frame."""

    height: int

    def under(self, frame: Array) -> Array:
        """Return the frame, [height, width, 3], with the picture below it."""
        ...


def record(
    path: Path, screen: Screen, player: RecordedPlayer, episodes: int = 1, below: Below | None = None
) -> list[RecordedEpisode]:
    """Play whole episodes and record them in one video."""
    width, height = video_size(screen.image_shape)
    with Mp4Writer(path, (width, height + (below.height if below else 0)), screen.frames_per_second) as video:

        def show(frame: Array) -> None:
            video.write(below.under(frame) if below else frame)

        return [play_episode(show, screen, player) for _ in range(episodes)]


def play_episode(show: Callable[[Array], None], screen: Screen, player: RecordedPlayer) -> RecordedEpisode:
    """Play one episode, and show every frame of it with its caption."""
    player.reset()
    text = drawable(player.caption())
    step = screen.reset()
    show(draw(step.frames[0].image, 0.0, 0, text))
    score, length_steps, length_frames = 0.0, 0, 0
    while not (step.terminated or step.truncated):
        step = screen.step(player.choose(step.obs[None], step.beside, step.reward))
        length_steps += 1
        for image, reward in step.frames:
            score += reward
            show(draw(image, score, length_steps, text))
        length_frames += len(step.frames)
    return RecordedEpisode(score, length_steps, length_frames, step.truncated, player.named_index)
