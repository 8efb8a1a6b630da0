"""Factories for the components of a run that have a network.

Each runtime calls them in the process where the component lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
import torch

from gdi.acting.actor import Actor
from gdi.acting.parameters import Parameters
from gdi.acting.player import Player
from gdi.acting.states import StatePicker, picked_share
from gdi.algorithms import make_algorithm
from gdi.clock import Clock
from gdi.config import Config, ExactReplayConfig, controller_traits, learner_traits
from gdi.cores import set_torch_threads, thread_count
from gdi.envs import EnvSpec, make_env
from gdi.envs.names import is_builtin
from gdi.errors import UserError
from gdi.evaluation import Evaluator
from gdi.evaluation.evaluator import num_envs_for
from gdi.index_space import make_index_space
from gdi.learner import Learner
from gdi.learner.group import LearnerGroup
from gdi.networks import make_network
from gdi.runtime.machine import available_memory_bytes
from gdi.runtime.malloc import keep_freed_memory
from gdi.runtime.memory_plan import MemoryPlan, check_fits, plan_memory
from gdi.runtime.states import STAGES
from gdi.seeds import child_seed


class HasClose(Protocol):
    """What holds processes or threads until it is closed."""

    def close(self) -> None: ...


Closable = TypeVar("Closable", bound=HasClose)


@contextmanager
def closed_on_error(part: Closable) -> Iterator[Closable]:
    """Close the part if the ``with`` block fails, because nobody else would."""
    with ExitStack() as stack:
        stack.callback(part.close)
        yield part
        stack.pop_all()


def resolve_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--run.device {device}: no GPU is available. Use --run.device cpu.")
    return torch.device(device)


def configure_process(threads: int) -> int:
    """Configure this process for training and return its number of threads; 0 requests one per core."""
    threads = thread_count(threads)
    set_torch_threads(threads)
    keep_freed_memory()
    return threads


def make_player(config: Config, spec: EnvSpec, num_envs: int, device: torch.device, *, greedy: bool = False) -> Player:
    """Return a player whose network parameters (θ) are overwritten before use."""
    algorithm = make_algorithm(config)
    network = make_network(config, algorithm, spec.observation_shape, spec.num_actions, 0, spec.vector_width)
    return Player(algorithm, network, num_envs, spec, device, greedy=greedy)


def make_learner(
    config: Config, device: torch.device, group: LearnerGroup | None = None
) -> tuple[Learner, EnvSpec, MemoryPlan]:
    """Return an initial learner, its environment's spec and the memory plan.

    The learner holds the initial network parameters (θ^(0)), alone or as one of a group. A configuration that does not
    fit in this machine's memory raises UserError before anything large is allocated. Only one copy of the environment
    and the network exist at that point.
    """
    spec = probe(config)
    algorithm = make_algorithm(config)
    seed = child_seed(config.seed, "network")
    try:
        network = make_network(config, algorithm, spec.observation_shape, spec.num_actions, seed, spec.vector_width)
    except RuntimeError as error:
        if "alloc" not in str(error):  # torch has no separate error for this
            raise
        raise UserError("this network does not fit in memory: lower --network.hidden-units or lstm-units.") from None
    plan = plan_memory(config, spec, network, 1 if group is None else group.size)
    check_fits(plan, available_memory_bytes())
    return Learner(network, algorithm, config, device, plan.chunk_sequences, group), spec, plan


def probe(config: Config) -> EnvSpec:
    """Return the spec of the environment after its first reset and step, which Gymnasium's checker looks at."""
    env = make_env(config.env, 1)
    try:
        if not is_builtin(config.env.id):
            env.reset(0)
            env.step(np.zeros(1, np.int64))
        return env.spec
    finally:
        env.close()


def make_actor(
    config: Config, parameters: Parameters, device: torch.device, threads: int, clock: Clock, *which: int
) -> Actor:
    """Return an actor with ``env.num_envs`` environments.

    ``which`` identifies the actor within the run and seeds it.
    """
    with closed_on_error(make_env(config.env, threads=threads)) as env:
        return Actor(
            env,
            make_player(config, env.spec, env.num_envs, device),  # the first pull overwrites θ
            parameters,
            config.data,
            len(make_index_space(config.index_space).names),
            generator=torch.Generator().manual_seed(child_seed(config.seed, "actions", *which)),
            env_seed=child_seed(config.seed, "environments", *which),
            clock=clock,
            redraws=controller_traits(config.controller).redraw == "window",
            picker=make_picker(config, *which),
        )


def make_picker(config: Config, *which: int) -> StatePicker | None:
    """Return the choice of states to keep from this actor, or None if the run keeps none."""
    wanted = config.run.states_per_stage
    if not wanted:
        return None
    return StatePicker(child_seed(config.seed, "states", *which), picked_share(wanted, config.steps // STAGES))


def make_evaluator(config: Config, device: torch.device, threads: int = 0) -> Evaluator:
    with closed_on_error(make_env(config.env, num_envs_for(config.evaluation.episodes), threads)) as env:
        player = make_player(config, env.spec, env.num_envs, device, greedy=config.evaluation.greedy)
        return Evaluator(config.env, env, player, config.evaluation.index)


def with_num_envs(config: Config, num_envs: int) -> Config:
    """Return the config with another number of environments, such as one actor's share."""
    return replace(config, env=replace(config.env, num_envs=num_envs))


def wider_replay(config: Config, actors: int) -> Config:
    """The config of a collector that gets a window from each of so many actors where a local run has one."""
    if not isinstance(config.data, ExactReplayConfig) or learner_traits(config.learner).trains_at_once:
        return config
    span = config.data.replay_span_windows * actors
    return replace(config, data=replace(config.data, replay_span_windows=span))
