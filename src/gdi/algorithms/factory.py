"""Builds the algorithm that a config asks for: one case per kind of ours, and ``build`` for a user's own."""

from __future__ import annotations

from gdi.algorithms.base import Algorithm
from gdi.algorithms.gdi import GDI
from gdi.config import Config, GDIConfig


def make_algorithm(config: Config) -> Algorithm:
    if isinstance(config.learner, GDIConfig):
        return GDI(config.learner)
    own: Algorithm = config.learner.build(config)
    return own
