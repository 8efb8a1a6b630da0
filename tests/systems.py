"""Small runs of DQN, PPO and IMPALA that several tests share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gdi.config import Config, TileBanditConfig
from gdi.presets import make_config
from helpers import change


def small(preset: str, **settings: Any) -> Config:
    """A run of a second or two."""
    config = make_config(preset, "MinAtar/Breakout-v0", steps=2000, seed=7)
    sizes: dict[str, Any] = {
        "dqn": {
            "capacity_transitions": 600,
            "learn_start_transitions": 200,
            "batch_size_sequences": 8,
            "target_period_updates": 30,
        },
        "ppo": {"sequence_steps": 8, "batch_size_sequences": 32, "replay": 2},
        "impala": {"sequence_steps": 5, "batch_size_sequences": 4},
    }[preset]
    config = replace(
        config,
        env=replace(config.env, num_envs=8),
        network=replace(config.network, hidden_units=16),
        evaluation=replace(config.evaluation, every_steps=1000, episodes=4),
        run=replace(config.run, log_every_steps=250, checkpoint_every_steps=500, threads=1, device="cpu"),
    )
    return change(config, **{**sizes, **settings})


def with_e(config: Config) -> Config:
    """E on the first component of λ."""
    space: Any = config.index_space
    name = next(iter(vars(space)))
    space = replace(space, **{name: replace(getattr(space, name), search=True)})
    return replace(config, index_space=space, controller=TileBanditConfig())
