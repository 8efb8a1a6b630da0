"""The newest of something that grows in versions."""

from __future__ import annotations

from typing import Generic, TypeVar

P = TypeVar("P")


class Newest(Generic[P]):
    """Holds one θ, or where it is kept. A version is the number of updates behind it, so lag is their difference."""

    def __init__(self, params: P, version: int = 0) -> None:
        self._params = params
        self.version = version

    def push(self, params: P, version: int) -> None:
        self._params, self.version = params, version

    def pull(self, have_version: int | None) -> tuple[P, int] | None:
        """θ and its version, or None when the caller has that one already."""
        return None if have_version == self.version else (self._params, self.version)
