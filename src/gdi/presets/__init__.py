"""Presets such as ``gdi-i3``. Each is a small function of a scale, which sets the size of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gdi.config import Config, EnvConfig
from gdi.envs.names import canonical_env_id, is_atari
from gdi.errors import UserError, did_you_mean
from gdi.presets import gdi
from gdi.presets.dqn import dqn
from gdi.presets.impala import impala
from gdi.presets.ppo import ppo
from gdi.presets.scales import SCALES, Scale, default_scale

__all__ = ["PRESETS", "SCALES", "Preset", "Scale", "default_scale", "make_config"]


@dataclass(frozen=True)
class Preset:
    """A description, and a function that returns the config at a scale."""

    summary: str
    at: Callable[[str], Config]


PRESETS = {
    "gdi-i3": Preset("one family of variables, Λ = (1/τ1, 1/τ2, ε), bandit controller", gdi.gdi_i3),
    "gdi-h3": Preset("two families with two reward shapings, Λ = (1/τ1, 1/τ2, ε), bandit controller", gdi.gdi_h3),
    "fixed": Preset("ablation: GDI-I0 without E, always π = Softmax(A)", gdi.fixed),
    "random": Preset("ablation: GDI-I3 without E, λ uniform per episode, each axis in its coordinate", gdi.random),
    "boltzmann": Preset("ablation: GDI-I1, Λ = (1/τ), bandit controller", gdi.boltzmann),
    "epsilon-greedy": Preset("ablation: GDI-I1, Λ = (ε), bandit controller", gdi.epsilon_greedy),
    "dqn": Preset("Q-learning with replay and a target network, ε annealed by a clock", dqn),
    "ppo": Preset("clipped policy gradient on fresh windows, a few epochs each", ppo),
    "impala": Preset("V-trace actor-critic on fresh windows, each trained once", impala),
}


def make_config(
    preset: str = "gdi-i3", env: Any = "", *, scale: str | None = None, steps: int | None = None, seed: int = 0
) -> Config:
    """Return the config of a preset at a scale; change it with ``replace``.

    ``env`` is an id, or the environment itself: a class, a function that makes one, a spec or a vector environment. By
    default, the scale is the one that fits it.
    """
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}.{did_you_mean(preset, PRESETS)} Presets: {', '.join(PRESETS)}.")
    world = _named(env)
    scale = default_scale(world.id) if scale is None else scale
    if scale not in SCALES:
        raise UserError(f"unknown scale {scale!r}.{did_you_mean(scale, SCALES)} Scales: {', '.join(SCALES)}.")
    config = PRESETS[preset].at(scale)
    copies = config.env.num_envs if world.num_envs == EnvConfig.num_envs else world.num_envs  # an instance has its own
    world = replace(world, num_envs=copies, protocol="paper" if is_atari(world.id) else "")
    config = replace(config, env=world, preset=preset, scale=scale, seed=seed)
    return config if steps is None else replace(config, steps=steps)


def _named(env: Any) -> EnvConfig:
    """Return the config of an environment that is given by its id or as an object."""
    if isinstance(env, str):
        return EnvConfig(id=canonical_env_id(env))
    from gdi.envs.forms import given  # not at the top, because it imports Gymnasium

    return given(EnvConfig(), env)
