"""The class of our own presets, measured on the objects that a config builds.

Λ comes from the config's index space. P⁰ and E come from its controller by running it: which components of λ its
proposals vary on, and whether they change with the returns that it observes. Θ comes from the learner, which reports
the families of variables with weight under a λ.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from gdi.config import AxisConfig, Config, axes_of, kind_of
from gdi.controller import make_controller
from gdi.index_space import make_index_space
from gdi.theory.taxonomy import GDIClass
from gdi.types import EpisodeEnd, Index

DRAWS = 200


def proposals(config: Config, seed: int, episode_returns: tuple[float, ...] = ()) -> list[Index]:
    """Return what the controller proposes after a fixed history of indices with these returns."""
    space = make_index_space(config.index_space)
    controller = make_controller(replace(config, seed=seed))
    history = np.random.default_rng(seed + 1)
    for number, episode_return in enumerate(episode_returns):
        x = np.array([history.uniform(axis.low, axis.high) for axis in space.axes])
        episode = EpisodeEnd(number, space.to_index(x), episode_return, length_steps=1, truncated=False)
        controller.observe([episode], transitions=1)
    return controller.propose(list(range(DRAWS)))


def varying_axes(config: Config, seed: int = 0) -> tuple[str, ...]:
    """Return the components of λ on which P⁰ varies, from a new controller's proposals."""
    drawn = proposals(config, seed)
    names = make_index_space(config.index_space).names
    return tuple(name for name, values in zip(names, zip(*drawn, strict=True), strict=True) if len(set(values)) > 1)


def controller_learns(config: Config, seed: int = 0) -> bool:
    """Return whether E is more than the identity.

    If so, equal histories with unequal returns lead to unequal proposals.
    """
    noise = np.random.default_rng(seed + 2)
    shown = [tuple(float(r) for r in noise.normal(size=64)) for _ in range(2)]
    return proposals(config, seed, shown[0]) != proposals(config, seed, shown[1])


def _ends(axis: AxisConfig) -> tuple[float, ...]:
    return (axis.low, axis.high) if axis.search else (axis.fixed_value,)


def families(config: Config) -> set[frozenset[str]]:
    """Return θ_λ by its families at the ends of every axis, where a family can lose all weight."""
    axes = axes_of(config.index_space)
    corners = product(*(_ends(axis) for axis in axes.values()))
    return {
        config.learner.families_of(dict(zip(axes, corner, strict=True)), config.network.families) for corner in corners
    }


def classify_config(config: Config) -> GDIClass:
    """Return the class GDI-I^n or GDI-H^n of a config."""
    return GDIClass(len(families(config)) > 1, len(varying_axes(config)), controller_learns(config))


def describe_config(config: Config) -> tuple[str, str, str, str]:
    """Describe Λ, Θ, P⁰ and E in words, from the config and its controller."""
    space = make_index_space(config.index_space)
    searched = " x ".join(space.label_of(axis.name) for axis in space.axes)
    theta = " or ".join(sorted(" and ".join(sorted(names)) for names in families(config)))
    theta = "one θ" if theta == "θ" else theta
    prior = "uniform" if varying_axes(config) else "point"
    operator_e = kind_of(config.controller) if controller_learns(config) else "identity"
    return searched or "one point", theta, prior, operator_e
