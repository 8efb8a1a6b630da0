"""GDI-I3, GDI-H3 and the ablations of tab:ablation_setting (Fan and Xiao, ICML 2022).

Each is a small function of a scale. At scale ``paper`` every number comes from the paper's tables, which are the
defaults of ``gdi.config``. The smaller scales differ, and docs/scales.md says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gdi.config import AdamWConfig, Config, ExactReplayConfig, FixedConfig, GDIConfig, GDISpace, UniformConfig
from gdi.presets.scales import SCALES

# The smaller scales start from these settings.
SMALL_DATA = ExactReplayConfig(
    batch_size_sequences=32,
    sequence_steps=20,
    burn_in_steps=0,
    replay=8,
    replay_span_windows=16,
    push_every_updates=1,
    pull_every_steps=1,
)
SMALL_LEARNER = GDIConfig(
    reward_scales=(0.15,),
    discount=0.99,
    policy_loss_scale=1.0,
    forward_dynamics_scale=0.0,
    inverse_dynamics_scale=0.0,
)
SMALL_OPTIMIZER = AdamWConfig(learning_rate=2e-3, warmup_updates=50, weight_decay=0.0, clip_norm=5.0)
# Small rewards make A small. A wider range of 1/τ lets the behavior be greedy even where rewards are rare.
WIDE_INVERSE_TAU = {"high": 300.0, "block_width": 6.0, "coordinate": "log"}

LEARNERS = {
    "paper": GDIConfig(),
    "atari-cpu": replace(SMALL_LEARNER, reward_scales=(0.5,), v_loss_scale=5.0, c_bar=0.9),
    # These values come from the tuning runs of docs/results/notebook/minatar.md. ρ̄ = ½ halves V's errors and the policy
    # gradient, and the loss scales make up for that. Likely and unlikely actions then have more similar weights.
    # With the paper's Q-loss weight of 10, A shrinks to 0 where rewards are rare, and then Freeway may never start.
    "minatar": replace(
        SMALL_LEARNER, v_loss_scale=10.0, q_loss_scale=1.0, policy_loss_scale=2.0, rho_bar=0.5, c_bar=0.5
    ),
    "classic": SMALL_LEARNER,
}
DATA = {
    "paper": ExactReplayConfig(),
    "atari-cpu": replace(SMALL_DATA, batch_size_sequences=16, replay=4, replay_span_windows=4),
    "minatar": SMALL_DATA,
    "classic": SMALL_DATA,
}
OPTIMIZERS = {
    "paper": AdamWConfig(),
    "atari-cpu": replace(SMALL_OPTIMIZER, learning_rate=7e-4),
    "minatar": SMALL_OPTIMIZER,
    "classic": SMALL_OPTIMIZER,
}
WIDE_SCALES = ("atari-cpu", "minatar")
# LunarLander lands after about 300,000 steps.
STEPS = {"classic": 500_000}


def gdi_i3(scale: str) -> Config:
    """Return GDI-I3: one family of variables, exploration settings λ = (1/τ1, 1/τ2, ε), and a bandit."""
    config = _with_log_rewards(scale)
    if scale != "classic":
        return config
    assert isinstance(config.learner, GDIConfig)
    # The log shape makes 100 worth seven times 1, and counts gains twice as much as losses. LunarLander then hovers.
    return replace(config, learner=replace(config.learner, reward_shapes=("none",), reward_scales=(0.2,)))


def gdi_h3(scale: str) -> Config:
    """Return GDI-H3: two families with two reward shapings, exploration settings λ = (1/τ1, 1/τ2, ε), and a bandit."""
    config = _with_log_rewards(scale)
    assert isinstance(config.learner, GDIConfig)
    # The second shape is small by itself: 0.19 for a reward of 1, where the first gives 1.39.
    scales = (config.learner.reward_scales[0], 1.0)
    learner = replace(config.learner, reward_shapes=("log", "root"), reward_scales=scales)
    return replace(config, network=replace(config.network, families=2), learner=learner)


def fixed(scale: str) -> Config:
    """Return the ablation "Fix Selection": GDI-I0 without E, where π = Softmax(A) always."""
    return replace(gdi_i3(scale), controller=FixedConfig())


def random(scale: str) -> Config:
    """Return the ablation "Random Selection": GDI-I3 without E, where λ is uniform per episode.

    Each axis is uniform in its coordinate.
    """
    return replace(gdi_i3(scale), controller=UniformConfig())


def boltzmann(scale: str) -> Config:
    """Return the ablation "Boltzmann Selection": GDI-I1 with Λ = (1/τ).

    Its policy π = Softmax(A/τ) is the mixture at ε = 1.
    """
    held = {"search": False}
    return _axes(gdi_i3(scale), inverse_tau_2={**held, "fixed_value": 0.0}, epsilon={**held, "fixed_value": 1.0})


def epsilon_greedy(scale: str) -> Config:
    """Return the ablation "ε-greedy Selection": GDI-I1 with Λ = (ε).

    The policy is uniform with probability ε and nearly greedy otherwise. It is as greedy as the search range allows,
    because a true argmax has no gradient.
    """
    config = gdi_i3(scale)
    assert isinstance(config.index_space, GDISpace)
    greedy = config.index_space.inverse_tau_2.high
    return _axes(
        config,
        inverse_tau_1={"search": False, "fixed_value": 0.0},
        inverse_tau_2={"search": False, "fixed_value": greedy},
    )


def _with_log_rewards(scale: str) -> Config:
    """Return GDI-I3 with the reward shape of Table H "GDI-I3 Reward Shape"."""
    config = SCALES[scale].apply(Config())
    config = replace(config, learner=LEARNERS[scale], data=DATA[scale], optimizer=OPTIMIZERS[scale])
    config = replace(config, steps=STEPS.get(scale, config.steps))
    if scale == "classic":
        # Without normalization MountainCar's speed, below 0.07, and MiniGrid's kinds of things, bytes up to 10, are
        # hardly seen. With 64 units LunarLander hovered more often.
        config = replace(config, network=replace(config.network, normalize=True, hidden_units=128))
    if scale in WIDE_SCALES:
        return _axes(config, inverse_tau_1=WIDE_INVERSE_TAU, inverse_tau_2=WIDE_INVERSE_TAU)
    return config


def _axes(config: Config, **axes: dict[str, Any]) -> Config:
    """Change axes of Λ, for example ``epsilon={"search": False, "fixed_value": 1.0}``."""
    space = config.index_space
    changed = {name: replace(getattr(space, name), **change) for name, change in axes.items()}
    return replace(config, index_space=replace(space, **changed))
