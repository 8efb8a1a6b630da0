"""PPO (Schulman et al., "Proximal Policy Optimization Algorithms", 2017).

In the paper's classes it is GDI-I⁰ without E, because Λ is one point. Samples are dropped after a few epochs.

Sources of the numbers. ``paper``: table 5 of the article (Atari), Adam's ε and the gradient norm of its released code.
``minatar``: the settings of our Stable-Baselines3 peer. ``classic``: the tuned CartPole settings of RL Baselines3 Zoo.
Deviations:

1. The end of a life does not end an episode.
2. The clip does not shrink with the learning rate.
"""

from __future__ import annotations

from dataclasses import replace

from gdi.config import AdamWConfig, Config, ExactReplayConfig, FixedConfig, PPOConfig, SoftmaxSpace
from gdi.presets.scales import SCALES

ADAM = AdamWConfig(
    learning_rate=2.5e-4,
    warmup_updates=0,
    weight_decay=0.0,
    adam_beta_2=0.999,
    adam_epsilon=1e-5,
    clip_norm=0.5,
)
# An update trains a minibatch of transitions, and ``replay`` counts the epochs.
ATARI = ExactReplayConfig(
    batch_size_sequences=256,
    burn_in_steps=0,
    sequence_steps=128,
    slice_steps=1,
    replay=3,
    replay_span_windows=1,
    push_every_updates=1,
    pull_every_steps=1,
)
LEARNERS = {
    # The article weighs (V − target)² by 1, and ½(V − target)² has half the gradient.
    "paper": PPOConfig(value_loss_scale=2.0),
    "atari-cpu": PPOConfig(value_loss_scale=0.5),
    # Stable-Baselines3 weighs (V − target)² by 0.5, so ½(V − target)² has the weight 1.
    "minatar": PPOConfig(clip=0.2, reward_clip=0.0),
    "classic": PPOConfig(clip=0.2, discount=0.98, gae_lambda=0.8, reward_clip=0.0),
}
DATA = {
    "paper": ATARI,
    "atari-cpu": replace(ATARI, replay=4),
    "minatar": replace(ATARI, sequence_steps=32, replay=4),
    "classic": replace(ATARI, sequence_steps=32, replay=20),
}
OPTIMIZERS = {
    "paper": ADAM,
    "atari-cpu": ADAM,
    "minatar": replace(ADAM, learning_rate=1e-3),
    "classic": replace(ADAM, learning_rate=1e-3),
}
ENVIRONMENTS = {"paper": 8, "atari-cpu": 8, "minatar": 64, "classic": 8}
ENTROPY_COSTS = {"classic": 0.0}
STEPS = {"classic": 100_000}


def ppo(scale: str) -> Config:
    """Return PPO: a clipped policy gradient on fresh windows, each trained for a few epochs."""
    config = SCALES[scale].apply(Config())
    space = SoftmaxSpace()
    cost = replace(space.entropy_cost, fixed_value=ENTROPY_COSTS.get(scale, space.entropy_cost.fixed_value))
    hidden = {"paper": 512, "atari-cpu": 512}.get(scale, config.network.hidden_units)
    torso = "nature" if scale in ("paper", "atari-cpu") else config.network.torso
    return replace(
        config,
        steps=STEPS.get(scale, config.steps),
        env=replace(config.env, num_envs=ENVIRONMENTS[scale]),
        index_space=replace(space, entropy_cost=cost),
        controller=FixedConfig(),
        network=replace(config.network, torso=torso, hidden_units=hidden, lstm_units=0),
        learner=LEARNERS[scale],
        optimizer=OPTIMIZERS[scale],
        data=DATA[scale],
        run=replace(config.run, overlap=False),
    )
