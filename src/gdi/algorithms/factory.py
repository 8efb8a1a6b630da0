"""Construction of the algorithm that a config names, either one of ours or a user's own."""

from __future__ import annotations

from gdi.algorithms.base import Algorithm
from gdi.algorithms.dqn import DQN
from gdi.algorithms.gdi import GDI
from gdi.algorithms.impala import IMPALA
from gdi.algorithms.ppo import PPO
from gdi.config import Config, DQNConfig, GDIConfig, IMPALAConfig, PPOConfig


def make_algorithm(config: Config) -> Algorithm:
    learner = config.learner
    build = getattr(learner, "build", None)
    if build is not None:  # first, because a user's class may be a subclass of one of ours
        own: Algorithm = build(config)
        return own
    if isinstance(learner, GDIConfig):
        return GDI(learner)
    if isinstance(learner, DQNConfig):
        return DQN(learner)
    if isinstance(learner, PPOConfig):
        return PPO(learner, by_transition=config.data.slice_steps == 1)
    assert isinstance(learner, IMPALAConfig)
    return IMPALA(learner)
