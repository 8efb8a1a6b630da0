"""Makes the parts of a run that have a network, from the config. Runtimes call these where the part is to live."""

from __future__ import annotations

from dataclasses import replace

import torch

from gdi.acting.actor import Actor
from gdi.acting.parameters import Parameters
from gdi.clock import Clock
from gdi.config import Config
from gdi.cores import keep_torch_threads, use_threads
from gdi.envs import EnvSpec, make_env
from gdi.errors import UserError
from gdi.evaluation import Evaluator
from gdi.evaluation.evaluator import num_envs_for
from gdi.learner import Learner
from gdi.learner.group import LearnerGroup
from gdi.networks import AgentNetwork, make_network
from gdi.runtime.memory import keep_freed_memory
from gdi.runtime.plan import MemoryPlan, check_fits, memory_bytes, plan_memory
from gdi.seeds import child_seed
from gdi.types import State


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


def blank_network(config: Config, spec: EnvSpec) -> AgentNetwork:
    """A network whose θ will be overwritten."""
    return make_network(config, spec.observation_shape, spec.num_actions, 0)


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
    seed = child_seed(config.seed, "network")
    try:
        network = make_network(config, spec.observation_shape, spec.num_actions, seed)
    except RuntimeError as error:
        if "alloc" not in str(error):  # torch has no error of its own for this
            raise
        raise UserError("this network does not fit into memory: lower --network.hidden-units or lstm-units.") from None
    plan = plan_memory(config, spec, network)
    check_fits(plan, memory_bytes())
    return Learner(network, config, device, plan.chunk_sequences, group), spec, plan


def make_actor(
    config: Config, parameters: Parameters, device: torch.device, threads: int, clock: Clock, *which: int
) -> Actor:
    """An actor with ``env.num_envs`` environments; ``which`` tells it from the run's others, and seeds it."""
    env = make_env(config.env, threads=threads)
    return Actor(
        env=env,
        network=blank_network(config, env.spec),  # overwritten by the first pull
        parameters=parameters,
        config=config.learner,
        generator=torch.Generator().manual_seed(child_seed(config.seed, "actions", *which)),
        clock=clock,
        env_seed=child_seed(config.seed, "environments", *which),
        device=device,
    )


def actor_states(state: State, num_envs: int) -> dict[int, State]:
    """By its number, what each actor of now, with ``num_envs`` environments, can continue from in a checkpoint.

    The run may have been saved with actors of another size; their episodes cannot go on, and new ones begin.
    """
    kept = {int(number): actor for number, actor in state.get("more_actors", {}).items()}
    if "actor" in state:  # missing if it was just being replaced
        kept[0] = state["actor"]
    if int(state.get("envs_per_actor", num_envs)) == num_envs:
        return kept
    return {number: {"common": actor["common"]} for number, actor in kept.items()}


def make_evaluator(config: Config, device: torch.device, threads: int = 0) -> Evaluator:
    env = make_env(config.env, num_envs_for(config.evaluation.episodes), threads)
    return Evaluator(config.env, env, blank_network(config, env.spec), device)


def share_environments(config: Config, num_envs: int) -> Config:
    """The config of an actor that has so many of the run's environments."""
    return replace(config, env=replace(config.env, num_envs=num_envs))
