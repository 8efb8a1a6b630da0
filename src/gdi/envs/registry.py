"""Construction of N copies of an environment from its id."""

from __future__ import annotations

from gdi.config import EnvConfig
from gdi.envs.base import VectorEnv
from gdi.envs.guard import Guard
from gdi.envs.names import canonical_env_id, is_atari
from gdi.errors import UserError


def make_env(config: EnvConfig, num_envs: int | None = None, threads: int = 0) -> VectorEnv:
    """Make ``num_envs`` copies of the environment (by default as many as the config says), with a guard.

    Raise UserError if the id names no environment. ``threads`` (0 means all cores) applies to environments that step in
    their own threads.
    """
    return Guard(make_unguarded(config, config.num_envs if num_envs is None else num_envs, threads), config)


def make_unguarded(config: EnvConfig, count: int, threads: int = 0, *, draws: bool = False) -> VectorEnv:
    """Make copies without a guard; ``draws`` makes them ``Drawable`` where that needs a setting."""
    if (canonical := canonical_env_id(config.id)) != config.id:
        # Some of these spellings also name ale-py's own environments, which have other defaults.
        raise UserError(f"{config.id} is an Atari game: name it {canonical} and set --env.protocol.")
    family = config.id.partition("/")[0]
    if config.protocol and not is_atari(config.id):
        raise UserError(
            f"--env.protocol {config.protocol} applies only to Atari games, and {config.id} is not one: drop it."
        )
    if family == "MinAtar":
        from gdi.envs.minatar import MinAtarEnv

        return MinAtarEnv(config.id, count, config.max_episode_steps)
    if is_atari(config.id):
        from gdi.envs.atari import AtariEnv
        from gdi.envs.protocols import protocol_of

        return AtariEnv(config.id, count, protocol_of(config), config.max_episode_steps, threads)
    if family == "Toy":
        from gdi.envs.toy import make_toy

        return make_toy(config.id, count, config.max_episode_steps)
    if config.processes and not draws:
        from gdi.envs.processes import ProcessEnv

        return ProcessEnv(config, count)
    from gdi.envs.gymnasium import GymnasiumEnv

    return GymnasiumEnv(config, count, draws=draws)
