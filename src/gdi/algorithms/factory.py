"""Construction of the algorithm that a config names, either one of ours or a user's own."""

from __future__ import annotations

from gdi.algorithms.base import Algorithm
from gdi.algorithms.gdi import GDI
from gdi.config import Config, GDIConfig


def make_algorithm(config: Config) -> Algorithm:
    if isinstance(config.learner, GDIConfig):
        return GDI(config.learner)
    own: Algorithm = config.learner.build(config)
    return own
