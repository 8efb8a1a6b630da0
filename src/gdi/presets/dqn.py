"""DQN (Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015).

In the paper's classes it is GDI-I⁰ without E, because Λ is one point. As published, a schedule anneals ε and so moves
that point.

Sources of the numbers. ``paper``: extended data table 1 of the article, and the released code where the two differ.
``atari-cpu``: ε, Adam and the learn start of Dopamine's DQN in JAX (``dopamine/jax/agents/dqn/configs/dqn.gin``). The
target period is the article's, and the smaller memory is our choice. ``minatar``: Young and Tian 2019. Both have Adam
and the squared loss of Obando-Ceron and Castro 2021. ``classic``: the tuned CartPole settings of RL Baselines3 Zoo,
with a learning rate that falls to 0. Deviations:

1. The end of a life does not end an episode.
2. The target network is renewed by updates: 10,000 steps at one update per 4 steps are 2,500 updates.
3. RMSProp's ε of 0.01 is for a loss summed over 32 transitions; for their mean it is 0.01 / 32².
4. Several environments run together. The acting network is at most one iteration old.
"""

from __future__ import annotations

from dataclasses import replace

from gdi.config import (
    AdamWConfig,
    Config,
    DQNConfig,
    EpsilonSpace,
    OptimizerConfig,
    RMSPropConfig,
    SampledReplayConfig,
    ScheduleConfig,
)
from gdi.presets.scales import SCALES

ADAM = AdamWConfig(
    learning_rate=2.5e-4,
    warmup_updates=0,
    weight_decay=0.0,
    adam_beta_2=0.999,
    adam_epsilon=3.125e-4,
    clip_norm=10.0,
    schedule="constant",
)
LEARNERS = {
    "paper": DQNConfig(target_period_updates=2_500),
    "atari-cpu": DQNConfig(target_period_updates=2_500, loss="squared"),
    "minatar": DQNConfig(target_period_updates=250, loss="squared", reward_clip=0.0),
    "classic": DQNConfig(target_period_updates=128, reward_clip=0.0),
}
DATA = {
    "paper": SampledReplayConfig(),
    "atari-cpu": SampledReplayConfig(capacity_transitions=200_000, learn_start_transitions=20_000),
    "minatar": SampledReplayConfig(capacity_transitions=100_000, learn_start_transitions=5_000, sequence_steps=2),
    "classic": SampledReplayConfig(
        capacity_transitions=100_000,
        learn_start_transitions=1_000,
        batch_size_sequences=64,
        updates=128,
        period_transitions=256,
        sequence_steps=32,
    ),
}
OPTIMIZERS: dict[str, OptimizerConfig] = {
    "paper": RMSPropConfig(epsilon=0.01 / 32**2, centered=True, schedule="constant"),
    "atari-cpu": replace(ADAM, learning_rate=6.25e-5, adam_epsilon=1.5e-4),
    "minatar": ADAM,
    # With a constant rate, one of three tuning runs forgot at the end what it had learned.
    "classic": replace(ADAM, learning_rate=2.3e-3, adam_epsilon=1e-8, schedule="linear"),
}
SCHEDULES = {
    "paper": ScheduleConfig(),
    "atari-cpu": ScheduleConfig(end=0.01, over_steps=250_000, evaluation=0.001),
    "minatar": ScheduleConfig(over_steps=100_000, evaluation=0.001),
    "classic": ScheduleConfig(end=0.04, over_steps=8_000, evaluation=0.0),
}
ENVIRONMENTS = {"paper": 8, "atari-cpu": 8, "minatar": 8, "classic": 8}
STEPS = {"classic": 50_000}


def dqn(scale: str) -> Config:
    """Return DQN: Q-learning with replay, a target network, and an ε that a schedule anneals."""
    config = SCALES[scale].apply(Config())
    hidden = {"paper": 512, "atari-cpu": 512, "classic": 256}.get(scale, config.network.hidden_units)
    torso = "nature" if scale in ("paper", "atari-cpu") else config.network.torso
    return replace(
        config,
        steps=STEPS.get(scale, config.steps),
        env=replace(config.env, num_envs=ENVIRONMENTS[scale]),
        index_space=EpsilonSpace(),
        controller=SCHEDULES[scale],
        network=replace(config.network, torso=torso, hidden_units=hidden, lstm_units=0, activation="relu"),
        learner=LEARNERS[scale],
        optimizer=OPTIMIZERS[scale],
        data=DATA[scale],
        run=replace(config.run, overlap=False, threads=1),
    )
