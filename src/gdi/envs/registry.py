"""From an environment's id to N running copies of it."""

from __future__ import annotations

from gdi.config import EnvConfig
from gdi.envs.base import VectorEnv


def make_env(config: EnvConfig, num_envs: int | None = None) -> VectorEnv:
    """The environment that the id names, ``num_envs`` copies (by default the config's); UserError if there is none."""
    count = config.num_envs if num_envs is None else num_envs
    family = config.id.partition("/")[0]
    if family == "MinAtar":
        from gdi.envs.minatar import MinAtarEnv

        return MinAtarEnv(config.id, count, config.max_episode_steps)
    if family == "Toy":
        from gdi.envs.toy import make_toy

        return make_toy(config.id, count, config.max_episode_steps)
    from gdi.envs.gymnasium import GymnasiumEnv

    return GymnasiumEnv(config.id, count, config.max_episode_steps)
