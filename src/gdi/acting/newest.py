"""The latest version of the parameters, without importing torch."""

from __future__ import annotations

from typing import Generic, TypeVar

P = TypeVar("P")


class LatestParameters(Generic[P]):
    """The latest parameters (θ), or a reference to them, with their version.

    A version is a number of updates, so the lag of an actor is a difference of versions.
    """

    def __init__(self, params: P, version: int = 0) -> None:
        self._params = params
        self.version = version

    def push(self, params: P, version: int) -> None:
        self._params, self.version = params, version

    def pull(self, have_version: int | None) -> tuple[P, int] | None:
        """Return the parameters and their version, or None if the caller already has that version."""
        return None if have_version == self.version else (self._params, self.version)
