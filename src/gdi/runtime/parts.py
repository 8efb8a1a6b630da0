"""Makes the parts of a run that have a network, from the config. Runtimes call these where the part is to live."""

from __future__ import annotations

from dataclasses import replace

import torch

from gdi.acting.actor import Actor
from gdi.acting.parameters import Parameters
from gdi.acting.player import Player
from gdi.algorithms import make_algorithm
from gdi.clock import Clock
from gdi.config import Config
from gdi.cores import keep_torch_threads, use_threads
from gdi.envs import EnvSpec, make_env
from gdi.errors import UserError
from gdi.evaluation import Evaluator
from gdi.evaluation.evaluator import num_envs_for
from gdi.index_space import make_index_space
from gdi.learner import Learner
from gdi.learner.group import LearnerGroup
from gdi.networks import make_network
from gdi.runtime.memory import keep_freed_memory
from gdi.runtime.plan import MemoryPlan, check_fits, memory_bytes, plan_memory
from gdi.seeds import child_seed


def resolve_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--run.device {device}: no GPU is available here; use --run.device cpu.")
    return torch.device(device)


def prepare_process(threads: int) -> int:
    """Set this process up for training with so many threads (0: one per core); returns how many they are."""
    threads = use_threads(threads)
    keep_torch_threads(threads)
    keep_freed_memory()
    return threads


def make_player(config: Config, spec: EnvSpec, num_envs: int, device: torch.device) -> Player:
    """A player whose θ will be overwritten."""
    algorithm = make_algorithm(config)
    network = make_network(config, algorithm, spec.observation_shape, spec.num_actions, 0)
    return Player(algorithm, network, num_envs, spec, device)


def make_learner(
    config: Config, device: torch.device, group: LearnerGroup | None = None
) -> tuple[Learner, EnvSpec, MemoryPlan]:
    """A learner with θ^(0), alone or one of a group; the environment it learns, and the memory that will take.

    What does not fit into this machine is refused (UserError) before anything large is made: so far there is one copy
    of the environment, and the network.
    """
    probe = make_env(config.env, 1)
    spec = probe.spec
    probe.close()
    algorithm = make_algorithm(config)
    seed = child_seed(config.seed, "network")
    try:
        network = make_network(config, algorithm, spec.observation_shape, spec.num_actions, seed)
    except RuntimeError as error:
        if "alloc" not in str(error):  # torch has no error of its own for this
            raise
        raise UserError("this network does not fit into memory: lower --network.hidden-units or lstm-units.") from None
    plan = plan_memory(config, spec, network)
    check_fits(plan, memory_bytes())
    return Learner(network, algorithm, config, device, plan.chunk_sequences, group), spec, plan


def make_actor(
    config: Config, parameters: Parameters, device: torch.device, threads: int, clock: Clock, *which: int
) -> Actor:
    """An actor with ``env.num_envs`` environments; ``which`` tells it from the run's others, and seeds it."""
    env = make_env(config.env, threads=threads)
    return Actor(
        env,
        make_player(config, env.spec, env.num_envs, device),  # θ is overwritten by the first pull
        parameters,
        config.data,
        len(make_index_space(config.index_space).names),
        generator=torch.Generator().manual_seed(child_seed(config.seed, "actions", *which)),
        env_seed=child_seed(config.seed, "environments", *which),
        clock=clock,
    )


def make_evaluator(config: Config, device: torch.device, threads: int = 0) -> Evaluator:
    env = make_env(config.env, num_envs_for(config.evaluation.episodes), threads)
    return Evaluator(config.env, env, make_player(config, env.spec, env.num_envs, device))


def share_environments(config: Config, num_envs: int) -> Config:
    """The config of an actor that has so many of the run's environments."""
    return replace(config, env=replace(config.env, num_envs=num_envs))


def wider_replay(config: Config, actors: int) -> Config:
    """The config of a collector that gets a window from each of so many actors where a local run has one."""
    span = config.data.replay_span_windows * actors
    return replace(config, data=replace(config.data, replay_span_windows=span))
