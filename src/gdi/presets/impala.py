"""IMPALA (Espeholt et al., "Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures", 2018).

In the paper's classes it is GDI-I⁰ without E, because Λ is one point. As published, many actors act with old copies of
θ, and V-trace corrects for that. ``actor/parameter_lag_updates`` is their age.

Sources of the numbers. ``paper``: the article's appendix (shallow model, single task); its rate was searched in a
range. The small scales share its losses, and their rate is tuned on seeds 100 to 103. Deviations:

1. The end of a life does not end an episode.
2. RMSProp's ε is 0.01, the middle of the article's search.
"""

from __future__ import annotations

from dataclasses import replace

from gdi.config import Config, ExactReplayConfig, FixedConfig, IMPALAConfig, RMSPropConfig, SoftmaxSpace
from gdi.presets.scales import SCALES

RMSPROP = RMSPropConfig(learning_rate=6e-4, decay=0.99, epsilon=0.01, clip_norm=40.0)
UNROLLS = ExactReplayConfig(
    batch_size_sequences=32,
    burn_in_steps=0,
    sequence_steps=20,
    replay=1,
    replay_span_windows=1,
    push_every_updates=1,
    pull_every_steps=1,
)
LEARNERS = {
    "paper": IMPALAConfig(),
    "atari-cpu": IMPALAConfig(),
    "minatar": IMPALAConfig(reward_clip=0.0),
    "classic": IMPALAConfig(reward_clip=0.0),
}
DATA = {
    "paper": UNROLLS,
    "atari-cpu": replace(UNROLLS, batch_size_sequences=16),
    "minatar": replace(UNROLLS, batch_size_sequences=16),
    "classic": replace(UNROLLS, batch_size_sequences=8),
}
OPTIMIZERS = {
    "paper": RMSPROP,
    "atari-cpu": RMSPROP,
    "minatar": replace(RMSPROP, learning_rate=1e-2),
    "classic": replace(RMSPROP, learning_rate=1e-2),
}


def impala(scale: str) -> Config:
    """Return IMPALA: a V-trace actor-critic on fresh windows, each trained once."""
    config = SCALES[scale].apply(Config())
    torso = "impala-shallow" if scale == "paper" else config.network.torso
    return replace(
        config,
        index_space=SoftmaxSpace(),
        controller=FixedConfig(),
        network=replace(config.network, torso=torso),
        learner=LEARNERS[scale],
        optimizer=OPTIMIZERS[scale],
        data=DATA[scale],
    )
