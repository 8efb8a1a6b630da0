"""Presets such as ``gdi-i3``, each a small function of a scale, which sets the size of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from gdi.config import SECTIONS, Config, EnvConfig
from gdi.envs.names import canonical_env_id, is_atari
from gdi.errors import UserError, did_you_mean
from gdi.presets import gdi
from gdi.presets.dqn import dqn
from gdi.presets.impala import impala
from gdi.presets.ppo import ppo
from gdi.presets.scales import SCALES, Scale, default_scale

__all__ = ["DEFAULT_PRESET", "PRESETS", "SCALES", "Preset", "Scale", "default_scale", "make_config"]


@dataclass(frozen=True)
class Preset:
    """A description, and a function that returns the config at a scale."""

    summary: str
    at: Callable[[str], Config]


PRESETS = {
    "gdi-i3": Preset("two temperatures and a mixing weight ε per episode, chosen by bandits", gdi.gdi_i3),
    "gdi-h3": Preset("like gdi-i3, with two networks and two reward shapes", gdi.gdi_h3),
    "fixed": Preset("ablation: always temperature 1, no controller", gdi.fixed),
    "random": Preset("ablation: the same settings as gdi-i3, drawn uniformly, no controller", gdi.random),
    "boltzmann": Preset("ablation: one temperature per episode, chosen by bandits", gdi.boltzmann),
    "epsilon-greedy": Preset("ablation: ε per episode, chosen by bandits", gdi.epsilon_greedy),
    "dqn": Preset("DQN: Q-learning with a replay and a target network; a schedule lowers ε", dqn),
    "ppo": Preset("PPO: clipped policy gradient; each new window is trained for a few epochs", ppo),
    "impala": Preset("IMPALA: V-trace actor-critic; each new window is trained once", impala),
}


DEFAULT_PRESET = "gdi-i3"


def make_config(
    preset: str = DEFAULT_PRESET,
    env: Any = "",
    *,
    scale: str | None = None,
    steps: float | None = None,
    seed: int = 0,
    **unknown: object,
) -> Config:
    """Return the config of a preset at a scale; change it with ``replace``.

    ``env`` is an id, or the environment itself: a class, a function that makes one, a spec or a vector environment. By
    default, the scale is the one that fits it. ``steps`` is a whole number, and ``1e6`` is one. Any other keyword
    raises a UserError that says how to change that setting.
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
    for name, value in unknown.items():
        raise UserError(f"make_config has no keyword {name!r}: {_way_to_set(name, value, config)}")
    if isinstance(steps, float) and steps.is_integer():
        steps = int(steps)
    return config if steps is None else replace(config, steps=steps)  # type: ignore[arg-type]  # validate checks it


def _named(env: Any) -> EnvConfig:
    """Return the config of an environment that is given by its id or as an object."""
    if isinstance(env, str):
        return EnvConfig(id=canonical_env_id(env))
    from gdi.envs.forms import given  # not at the top, because it imports Gymnasium

    return given(EnvConfig(), env)


def _way_to_set(name: str, value: object, config: Config) -> str:
    """Return how to change the setting that a keyword means, or which keywords there are."""
    field = "learning_rate" if name == "lr" else name
    for section in SECTIONS:
        if field in {f.name for f in fields(getattr(config, section))}:
            changed = f"{section}=replace(config.{section}, {field}={value!r})"
            return f"use dataclasses.replace(config, {changed})."
    return "use scale, steps or seed, and dataclasses.replace for the settings in the sections of the config."
