"""Construction of a vector environment from whatever form the environment has."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gdi.config import EnvConfig
from gdi.envs.autoreset import NextStep
from gdi.envs.forms import find, makes_vectors, one_line, wrappers
from gdi.envs.guard import CopyGuard, Restarts
from gdi.envs.pictures import PICTURES
from gdi.errors import UserError


def make_copies(config: EnvConfig, num_envs: int, *, draws: bool = False) -> Any:
    """Return a vector environment of ``num_envs`` copies that resets on the next step; ``draws`` gives it pictures."""
    target = find(config)
    try:
        if makes_vectors(target) or (isinstance(target, EnvSpec) and target.entry_point is None):
            return NextStep(config.id, _vectors(config, target, num_envs))
        return _copies(config, target, num_envs, draws)
    except UserError:
        raise
    except Exception as error:  # the constructor of the environment may raise anything
        raise UserError(f"cannot make environment {config.id!r}: {type(error).__name__}: {one_line(error)}") from None


def _copies(config: EnvConfig, target: Any, num_envs: int, draws: bool) -> Any:
    """Return guarded copies of a single environment, one after another in this process."""
    spec = target
    if not isinstance(target, EnvSpec):
        name = re.sub(r"\W", "", config.id.rpartition(":")[2].rpartition("/")[2]) or "Env"
        spec = EnvSpec(id=f"{name}-v0", entry_point=target)
    options: dict[str, Any] = {"max_episode_steps": config.max_episode_steps} if config.max_episode_steps else {}
    if draws:
        options["render_mode"] = PICTURES

    def make() -> Any:
        env = gymnasium.make(spec, **options, **config.arguments)
        for wrap in wrappers(config):
            env = wrap(env)
        return env

    restarts = Restarts(config.restart_on_error)
    guarded = [partial(CopyGuard, make, i, config, restarts) for i in range(num_envs)]
    return SyncVectorEnv(guarded, autoreset_mode=AutoresetMode.NEXT_STEP)


def vectors_only(option: str, env_id: str) -> str:
    """Return the message for an option of single environments."""
    return f"{option} does not apply to {env_id}, which is a vector environment: set it there."


def _vectors(config: EnvConfig, target: Any, num_envs: int) -> Any:
    """Return a new vector environment of others, made by its class, its function or the spec of an instance.

    An instance itself is never stepped, because training and evaluation would then play in the same copies.
    """
    for option, value in (
        ("--env.wrappers", config.wrappers),
        ("--env.max-episode-steps", config.max_episode_steps),
        ("--env.restart-on-error", config.restart_on_error),
    ):
        if value:
            raise UserError(vectors_only(option, config.id))
    if isinstance(target, EnvSpec):
        return gymnasium.make_vec(target, num_envs=num_envs, **config.arguments)
    if callable(target):
        return target(num_envs=num_envs, **config.arguments)
    kwargs = {name: value for name, value in target.spec.kwargs.items() if name != "num_envs"}
    return gymnasium.make_vec(replace(target.spec, kwargs=kwargs), num_envs=num_envs)
