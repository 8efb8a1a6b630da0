"""From an environment's id to N running copies of it."""

from __future__ import annotations

from gdi.config import EnvConfig
from gdi.envs.base import VectorEnv
from gdi.envs.names import canonical_env_id, is_atari
from gdi.errors import UserError


def make_env(config: EnvConfig, num_envs: int | None = None, threads: int = 0) -> VectorEnv:
    """The environment that the id names, ``num_envs`` copies (by default the config's); UserError if there is none.

    ``threads`` (0: all cores) is for environments that step in threads of their own.
    """
    count = config.num_envs if num_envs is None else num_envs
    if (canonical := canonical_env_id(config.id)) != config.id:
        # Some of these spellings also name environments of ale-py's own, with its own defaults.
        raise UserError(f"{config.id} is an Atari game: name it {canonical}, with a protocol.")
    family = config.id.partition("/")[0]
    if config.protocol and not is_atari(config.id):
        raise UserError(f"--env.protocol {config.protocol} is for Atari games, and {config.id} is none: drop it.")
    if family == "MinAtar":
        from gdi.envs.minatar import MinAtarEnv

        return MinAtarEnv(config.id, count, config.max_episode_steps)
    if is_atari(config.id):
        from gdi.envs.atari import AtariEnv
        from gdi.envs.protocols import find_protocol

        return AtariEnv(config.id, count, find_protocol(config.protocol), config.max_episode_steps, threads)
    if family == "Toy":
        from gdi.envs.toy import make_toy

        return make_toy(config.id, count, config.max_episode_steps)
    from gdi.envs.gymnasium import GymnasiumEnv

    return GymnasiumEnv(config.id, count, config.max_episode_steps)
