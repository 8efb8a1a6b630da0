"""Presets: each algorithm a small difference from GDI-I3, each scale a set of sizes with its reasons.

An algorithm (``gdi-i3``, ``fixed``, ...) says *what* runs: the paper's agents and the ablations of
tab:ablation_setting. A scale (``paper``, ``atari-cpu``, ``minatar``, ``classic``) says *how large*. ``make_config``
composes the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gdi.config import Config, EnvConfig, EvaluationConfig, RunConfig
from gdi.envs.names import canonical_env_id, is_atari
from gdi.errors import UserError, nearest


@dataclass(frozen=True)
class Preset:
    """A name, what it is, and the change that makes it."""

    summary: str
    apply: Callable[[Config], Config]


def _gdi_i3(config: Config) -> Config:
    return config


def _gdi_h3(config: Config) -> Config:
    # The second shape is small by itself: 0.19 for a reward of 1, where the first gives 1.39.
    scales = (config.network.reward_scales[0], 1.0)
    network = replace(config.network, families=2, reward_shapes=("log", "root"), reward_scales=scales)
    return replace(config, network=network)


def _search(config: Config, **axes: dict[str, Any]) -> Config:
    """Change axes of Λ: ``epsilon={"search": False, "fixed_value": 1.0}``."""
    space = config.index_space
    changed = {name: replace(getattr(space, name), **change) for name, change in axes.items()}
    return replace(config, index_space=replace(space, **changed))


def _fixed(config: Config) -> Config:
    return replace(config, controller=replace(config.controller, kind="fixed"))


def _random(config: Config) -> Config:
    return replace(config, controller=replace(config.controller, kind="uniform"))


def _boltzmann(config: Config) -> Config:
    # Λ = {τ}: π = Softmax(A/τ), which is the mixture at ε = 1.
    return _search(
        config, inverse_tau_2={"search": False, "fixed_value": 0.0}, epsilon={"search": False, "fixed_value": 1.0}
    )


def _epsilon_greedy(config: Config) -> Config:
    # Λ = {ε}: uniform with probability ε, else as greedy as the search range allows (a true argmax has no gradient).
    return _search(
        config,
        inverse_tau_1={"search": False, "fixed_value": 0.0},
        inverse_tau_2={"search": False, "fixed_value": config.index_space.inverse_tau_2.high},
    )


PRESETS = {
    "gdi-i3": Preset("one family of variables, Λ = (1/τ1, 1/τ2, ε), bandit controller", _gdi_i3),
    "gdi-h3": Preset("two families with two reward shapings, Λ = (1/τ1, 1/τ2, ε), bandit controller", _gdi_h3),
    "fixed": Preset("ablation: GDI-I0 without E, always π = Softmax(A)", _fixed),
    "random": Preset("ablation: GDI-I3 without E, λ uniform per episode, each axis in its coordinate", _random),
    "boltzmann": Preset("ablation: GDI-I1, Λ = (1/τ), bandit controller", _boltzmann),
    "epsilon-greedy": Preset("ablation: GDI-I1, Λ = (ε), bandit controller", _epsilon_greedy),
}


def _paper(config: Config) -> Config:
    # The defaults of config.py are the paper's tables. Its actors and learner are machines apart: they overlap.
    return replace(config, run=replace(config.run, overlap=True))


def _small(config: Config, *, steps: int, num_envs: int, hidden_units: int) -> Config:
    """What the laptop scales share; the reasons are in docs/deviations.md, "The small scales", and docs/atari.md."""
    return replace(
        config,
        steps=steps,
        env=replace(config.env, num_envs=num_envs),
        network=replace(config.network, torso="auto", hidden_units=hidden_units, lstm_units=0, reward_scales=(0.15,)),
        learner=replace(
            config.learner,
            batch_size_sequences=32,
            sequence_steps=20,
            burn_in_steps=0,
            replay=8,
            replay_span_windows=16,
            discount=0.99,
            policy_loss_scale=1.0,
            forward_dynamics_scale=0.0,
            inverse_dynamics_scale=0.0,
            learning_rate=2e-3,
            warmup_updates=50,
            weight_decay=0.0,
            clip_norm=5.0,
            push_every_updates=1,
            pull_every_steps=1,
        ),
    )


def _wide_inverse_tau(config: Config) -> Config:
    # Rewards below 1 shrink A: without a wider range of 1/τ no behavior is greedy where rewards are rare.
    wide = {"high": 300.0, "block_width": 6.0, "coordinate": "log"}
    return _search(config, inverse_tau_1=wide, inverse_tau_2=wide)


def _minatar(config: Config) -> Config:
    small = _small(config, steps=1_000_000, num_envs=64, hidden_units=128)
    return replace(
        _wide_inverse_tau(small),
        # Chosen by the tuning runs of docs/results/minatar.md. ρ̄ = ½ halves V's errors and the policy gradient, and
        # the scales make up for that: what changes is that likelier and less likely actions count more alike.
        learner=replace(small.learner, v_loss_scale=10.0, policy_loss_scale=2.0, rho_bar=0.5, c_bar=0.5),
        evaluation=EvaluationConfig(every_steps=100_000),
        run=RunConfig(log_every_steps=10_000, checkpoint_every_steps=100_000, threads=2),
    )


def _atari_cpu(config: Config) -> Config:
    small = _small(config, steps=4_000_000, num_envs=32, hidden_units=256)
    return replace(
        _wide_inverse_tau(small),
        network=replace(small.network, torso="impala-shallow", lstm_units=256, reward_scales=(0.5,)),
        learner=replace(
            small.learner,
            batch_size_sequences=16,
            replay=4,
            replay_span_windows=4,
            v_loss_scale=5.0,
            c_bar=0.9,
            learning_rate=7e-4,
        ),
        evaluation=EvaluationConfig(every_steps=500_000),
        run=RunConfig(log_every_steps=10_000, checkpoint_every_steps=100_000),
    )


def _classic(config: Config) -> Config:
    return replace(
        _small(config, steps=200_000, num_envs=32, hidden_units=64),
        evaluation=EvaluationConfig(every_steps=25_000),
        run=RunConfig(log_every_steps=2_500, checkpoint_every_steps=25_000, threads=2),
    )


SCALES = {
    "paper": Preset("the paper's tables: 160 environments, IMPALA-deep and LSTM 256, 200M frames; wants a GPU", _paper),
    "atari-cpu": Preset("Atari on a few CPU cores: 32 environments, IMPALA-shallow and LSTM 256, 4M steps", _atari_cpu),
    "minatar": Preset("10x10 games on a laptop CPU: 64 environments, small convolution, 1M steps", _minatar),
    "classic": Preset(
        "vector observations on a laptop CPU: 32 environments, small dense network, 200k steps", _classic
    ),
}


def default_scale(env_id: str) -> str:
    """The scale that fits the environment and this hardware: the paper's is for Atari with a GPU."""
    if env_id.startswith("MinAtar/"):
        return "minatar"
    if is_atari(env_id):
        import torch  # only here: presets are also read where torch is not wanted

        return "paper" if torch.cuda.is_available() else "atari-cpu"
    return "classic"


def make_config(
    preset: str = "gdi-i3", env: str = "", *, scale: str | None = None, steps: int | None = None, seed: int = 0
) -> Config:
    """The config of a preset at a scale (by default the one that fits the environment); change it with ``replace``."""
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}.{nearest(preset, PRESETS)} Presets: {', '.join(PRESETS)}.")
    env = canonical_env_id(env)
    scale = default_scale(env) if scale is None else scale
    if scale not in SCALES:
        raise UserError(f"unknown scale {scale!r}.{nearest(scale, SCALES)} Scales: {', '.join(SCALES)}.")
    world = EnvConfig(id=env, protocol="paper" if is_atari(env) else "")
    config = PRESETS[preset].apply(SCALES[scale].apply(Config(env=world)))
    config = replace(config, preset=preset, scale=scale, seed=seed)
    return config if steps is None else replace(config, steps=steps)
