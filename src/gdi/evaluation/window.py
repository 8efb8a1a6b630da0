"""A window that shows an agent at play, in the speed of its environment.

pygame comes with the extra ``video`` and is imported only for a window.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from gdi.errors import UserError, install_hint
from gdi.types import Array

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")


class WindowClosedError(Exception):
    """The user closed the window."""


def check_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> None:
    """Raise UserError if no window can be opened."""
    if platform.startswith("linux") and not any(environment.get(name) for name in DISPLAYS):
        raise UserError("this terminal has no display for a window: add --video play.mp4 to record a video instead.")
    try:
        import pygame  # noqa: F401
    except ImportError as error:
        raise UserError(f"a window needs the package {error.name}: {install_hint('video')}.") from None


class Window:
    """A window of a size in pixels. Use it as ``with Window(...) as window``."""

    def __init__(self, title: str, size: tuple[int, int], frames_per_second: int) -> None:
        import pygame

        self._pygame: Any = pygame
        self._frames_per_second = frames_per_second
        try:
            pygame.display.init()
            self._surface = pygame.display.set_mode(size)
        except pygame.error as error:
            raise UserError(f"cannot open a window ({error}): add --video play.mp4 to record a video.") from None
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()

    def show(self, image: Array) -> None:
        """Show a picture, [height, width, 3], when its time has come. Raise WindowClosedError if the user leaves."""
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (
                event.type == pygame.KEYDOWN and event.key in (pygame.K_ESCAPE, pygame.K_q)
            ):
                raise WindowClosedError
        height, width, _ = image.shape
        self._surface.blit(pygame.image.frombuffer(image.tobytes(), (width, height), "RGB"), (0, 0))
        pygame.display.flip()
        self._clock.tick(self._frames_per_second)

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pygame.display.quit()
