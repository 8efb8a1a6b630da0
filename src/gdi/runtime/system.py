"""Builds every part of a run once, from the config alone."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import torch

from gdi.acting import Actor, Collector, ParameterServer
from gdi.clock import Clock
from gdi.config import Config
from gdi.controller import make_controller
from gdi.cores import keep_torch_threads, use_threads
from gdi.envs import EnvSpec, make_env
from gdi.errors import UserError
from gdi.evaluation import Evaluator
from gdi.evaluation.evaluator import num_envs_for
from gdi.index_space import make_index_space
from gdi.iteration import Parts
from gdi.learner import Learner
from gdi.networks import make_network
from gdi.runtime.memory import keep_freed_memory
from gdi.runtime.plan import MemoryPlan, check_fits, memory_bytes, plan_memory
from gdi.types import State


def child_seed(seed: int, name: str, *more: int) -> int:
    """A seed of its own for each named part (and moment), all descending from the run's one seed."""
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode()), *more]).generate_state(1)[0])


def resolve_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--run.device {device}: no GPU is available here; use --run.device cpu.")
    return torch.device(device)


@dataclass
class System:
    """The assembled parts, and the evaluator beside them."""

    config: Config
    spec: EnvSpec
    plan: MemoryPlan
    parts: Parts
    evaluator: Evaluator

    def state_dict(self) -> State:
        parts = self.parts
        return {
            "actor": parts.actor.state_dict(),
            "collector": parts.collector.state_dict(),
            "learner": parts.learner.state_dict(),
            "parameters": parts.parameters.state_dict(),
            "controllers": {str(i): controller.state_dict() for i, controller in enumerate(parts.controllers)},
            "steps": parts.steps,
            "episodes": parts.episodes,
        }

    def load_state_dict(self, state: State) -> None:
        parts = self.parts
        parts.collector.load_state_dict(state["collector"])
        parts.learner.load_state_dict(state["learner"])
        parts.parameters.load_state_dict(state["parameters"])
        for i, controller in enumerate(parts.controllers):
            controller.load_state_dict(state["controllers"][str(i)])
        parts.actor.load_state_dict(state["actor"])
        parts.steps, parts.episodes = int(state["steps"]), int(state["episodes"])

    def close(self) -> None:
        self.parts.actor.close()
        self.parts.learner.close()
        self.evaluator.close()


def build(config: Config) -> System:
    """Every part, in its initial state. Bad combinations of environment and config raise UserError here."""
    device = resolve_device(config.run.device)
    threads = use_threads(config.run.threads)
    keep_torch_threads(threads)
    keep_freed_memory()
    seed = config.seed
    clock = Clock()

    # One copy first: what does not fit is refused before anything large is made.
    probe = make_env(config.env, 1)
    spec = probe.spec
    probe.close()
    shape, num_actions = spec.observation_shape, spec.num_actions
    network = make_network(config, shape, num_actions, child_seed(seed, "network"))
    plan = plan_memory(config, spec, network)
    check_fits(plan, memory_bytes())

    env = make_env(config.env, threads=threads)
    learner = Learner(network, config, device, plan.chunk_sequences)
    parameters = ParameterServer(learner.parameters())
    space = make_index_space(config.index_space)
    num_controllers = config.env.num_envs if config.controller.per_environment else 1
    controllers = [
        make_controller(config.controller, space, np.random.default_rng(child_seed(seed, "controller", i)))
        for i in range(num_controllers)
    ]
    actor = Actor(
        env=env,
        network=make_network(config, shape, num_actions, 0),  # overwritten by the first pull
        parameters=parameters,
        config=config.learner,
        generator=torch.Generator().manual_seed(child_seed(seed, "actions")),
        clock=clock,
        env_seed=child_seed(seed, "environments"),
        device=device,
    )
    evaluator = Evaluator(
        config.env,
        make_env(config.env, num_envs_for(config.evaluation.episodes), threads),
        make_network(config, shape, num_actions, 0),
        device,
    )
    parts = Parts(
        actor=actor,
        collector=Collector(config.learner, np.random.default_rng(child_seed(seed, "collector"))),
        learner=learner,
        parameters=parameters,
        controllers=controllers,
        clock=clock,
        push_every_updates=config.learner.push_every_updates,
        # Beside workers that have a core each, more threads would only wait for each other.
        actor_threads=1 if config.learner.workers > 1 else threads,
    )
    return System(config, spec, plan, parts, evaluator)
