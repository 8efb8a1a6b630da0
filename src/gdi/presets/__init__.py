"""Presets such as ``gdi-i3``, each a small function of a scale, which sets the size of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

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
    env: str = "",
    *,
    scale: str | None = None,
    steps: float | None = None,
    seed: int = 0,
    **unknown: object,
) -> Config:
    """Return the config of a preset at a scale; change it with ``replace``.

    By default, the scale is the one that fits the environment. ``steps`` is a whole number, and ``1e6`` is one. Any
    other keyword raises a UserError that says how to change that setting.
    """
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}.{did_you_mean(preset, PRESETS)} Presets: {', '.join(PRESETS)}.")
    env = canonical_env_id(env)
    scale = default_scale(env) if scale is None else scale
    if scale not in SCALES:
        raise UserError(f"unknown scale {scale!r}.{did_you_mean(scale, SCALES)} Scales: {', '.join(SCALES)}.")
    config = PRESETS[preset].at(scale)
    world = EnvConfig(id=env, num_envs=config.env.num_envs, protocol="paper" if is_atari(env) else "")
    config = replace(config, env=world, preset=preset, scale=scale, seed=seed)
    for name, value in unknown.items():
        raise UserError(f"make_config has no keyword {name!r}: {_way_to_set(name, value, config)}")
    if isinstance(steps, float) and steps.is_integer():
        steps = int(steps)
    return config if steps is None else replace(config, steps=steps)  # type: ignore[arg-type]  # validate checks it


def _way_to_set(name: str, value: object, config: Config) -> str:
    """Return how to change the setting that a keyword means, or which keywords there are."""
    field = "learning_rate" if name == "lr" else name
    for section in SECTIONS:
        if field in {f.name for f in fields(getattr(config, section))}:
            changed = f"{section}=replace(config.{section}, {field}={value!r})"
            return f"use dataclasses.replace(config, {changed})."
    return "use scale, steps or seed, and dataclasses.replace for the settings in the sections of the config."
