"""The class of our own presets, measured on the live objects a config builds, so that descriptions cannot
drift.

Λ comes from the config's index space, P⁰ and E from its controller, run: which components of λ its proposals
vary on, and whether its proposals change with the returns it is shown. Θ comes from the network's number of
families.
"""

from __future__ import annotations

import numpy as np

from gdi.config import AxisConfig, Config
from gdi.controller import make_controller
from gdi.index_space import make_index_space
from gdi.theory.taxonomy import GDIClass, by_mixture_weight
from gdi.types import AXES, Index

DRAWS = 200


def proposals(config: Config, seed: int, episode_returns: tuple[float, ...] = ()) -> list[Index]:
    """What the config's controller proposes after a fixed history of indices, each shown with the return given here."""
    space = make_index_space(config.index_space)
    controller = make_controller(config.controller, space, np.random.default_rng(seed))
    history = np.random.default_rng(seed + 1)
    for episode_return in episode_returns:
        x = np.array([history.uniform(axis.low, axis.high) for axis in space.axes])
        controller.observe(space.to_index(x), episode_return)
    return [controller.propose() for _ in range(DRAWS)]


def varying_axes(config: Config, seed: int = 0) -> tuple[str, ...]:
    """The components of λ on which P⁰ varies, as proposed by a fresh controller."""
    drawn = proposals(config, seed)
    return tuple(name for name in AXES if len({getattr(index, name) for index in drawn}) > 1)


def controller_learns(config: Config, seed: int = 0) -> bool:
    """Whether E is more than the identity: equal histories with unequal returns lead to unequal proposals."""
    noise = np.random.default_rng(seed + 2)
    shown = [tuple(float(r) for r in noise.normal(size=64)) for _ in range(2)]
    return proposals(config, seed, shown[0]) != proposals(config, seed, shown[1])


def _ends(axis: AxisConfig) -> tuple[float, ...]:
    return (axis.low, axis.high) if axis.search else (axis.fixed_value,)


def classify_config(config: Config) -> GDIClass:
    """GDI-I^n or GDI-H^n of a config. θ_λ is compared at the ends of the ε axis, where a family can lose all weight."""
    theta = by_mixture_weight(0, config.network.families)
    families = {theta((epsilon,)) for epsilon in _ends(config.index_space.epsilon)}
    return GDIClass(len(families) > 1, len(varying_axes(config)), controller_learns(config))


def describe_config(config: Config) -> tuple[str, str, str, str]:
    """Λ, Θ, P⁰ and E in words, read off the config and its live controller."""
    shown = {"inverse_tau_1": "1/τ1", "inverse_tau_2": "1/τ2", "epsilon": "ε"}
    searched = " x ".join(shown[name] for name in AXES if getattr(config.index_space, name).search)
    theta = "one θ" if config.network.families == 1 else "θ1 if ε > 0, θ2 if ε < 1"
    prior = "uniform" if varying_axes(config) else "point"
    return searched or "one point", theta, prior, config.controller.kind if controller_learns(config) else "identity"
