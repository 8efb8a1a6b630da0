"""The memory plan: how much a run will hold, before it holds anything, and into what chunks a batch must be cut.

The plan is arithmetic over the config and one measured number: what backpropagation keeps of a single step, counted on
the real network.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gdi.config import Config
from gdi.envs import EnvSpec
from gdi.errors import UserError
from gdi.evaluation.evaluator import num_envs_for
from gdi.index_space import make_index_space
from gdi.networks import AgentNetwork, Seen

GIB = 1 << 30
# What all chunks that are trained side by side may keep for backpropagation. Fixed, so that a run's sums do not depend
# on the machine; large enough that convolutions lose nothing.
ACTIVATION_BYTES = 2 * GIB
# Backpropagation holds gradients beside what it kept: at most about half as much again, measured on all torsos.
BACKWARD_FACTOR = 1.5
PROGRAM_BYTES = 500 << 20  # Python, torch and its kernels
EMULATOR_BYTES = 3 << 20  # one copy of an environment
# The learner's θ, its gradient and two moments; copies at the parameter server, on its way there, the actor, evaluator.
COPIES_OF_PARAMETERS = 8
# action, reward, flags, μ, λ, version and what came before them, per step
SCALARS_BYTES = 64


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by purpose, and how many sequences are trained at once (0: the whole batch).

    Learning and the network are on the GPU where there is one; the plan counts them as if all were in one place.
    """

    bytes_by_purpose: dict[str, int]
    chunk_sequences: int

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes_by_purpose.values())

    def text(self) -> str:
        parts = ", ".join(f"{name} {size / GIB:.2f}" for name, size in self.bytes_by_purpose.items())
        chunks = f"; batches in chunks of {self.chunk_sequences} sequences" if self.chunk_sequences else ""
        return f"Memory: at most about {self.total_bytes / GIB:.1f} GiB ({parts}){chunks}"


def plan_memory(config: Config, spec: EnvSpec, network: AgentNetwork) -> MemoryPlan:
    data, num_envs, workers = config.data, config.env.num_envs, config.run.workers
    length = data.window_steps
    frame_bytes = math.prod(spec.frame_shape) * spec.observation_dtype.itemsize
    state_bytes = network.initial_state(1).numel() * 4
    # One sequence as it is stored: each frame once, scalars, the recurrent state at its first step.
    sequence_bytes = (spec.frame_stack + length) * frame_bytes + length * SCALARS_BYTES + state_bytes
    num_windows = data.held_windows(num_envs)
    kept_step_bytes = saved_bytes_per_step(network, spec, len(make_index_space(config.index_space).names))
    kept_bytes = int(kept_step_bytes * (data.sequence_steps + 1) * BACKWARD_FACTOR)
    eval_envs = num_envs_for(config.evaluation.episodes)
    at_once = math.ceil(data.batch_size_sequences / workers)
    chunk = max(1, min(at_once, ACTIVATION_BYTES // (kept_bytes * workers)))
    observation_bytes = math.prod(spec.observation_shape) * (spec.observation_dtype.itemsize + 4)
    parameter_bytes = sum(p.numel() * p.element_size() for p in network.parameters())
    return MemoryPlan(
        {
            "sequences": num_windows * num_envs * sequence_bytes + 2 * num_envs * length * state_bytes,
            "batch": data.batch_size_sequences * sequence_bytes,
            "learning": workers * chunk * (kept_bytes + (length + 1) * observation_bytes),
            "network": (COPIES_OF_PARAMETERS + workers) * parameter_bytes,
            "acting": (num_envs + eval_envs) * (EMULATOR_BYTES + kept_step_bytes),
            "program": PROGRAM_BYTES,
        },
        0 if chunk == data.batch_size_sequences else chunk,
    )


def saved_bytes_per_step(network: AgentNetwork, spec: EnvSpec, num_components: int) -> int:
    """What autograd keeps of each step for the backward pass: what one stretch keeps more than a shorter one.

    So weights do not count, nor copies of them in another precision, of which a stretch of any length keeps one.
    """
    few, many = 4, 8
    more = _saved_bytes(network, spec, num_components, many) - _saved_bytes(network, spec, num_components, few)
    return math.ceil(more / (many - few))


def _saved_bytes(network: AgentNetwork, spec: EnvSpec, num_components: int, steps: int) -> int:
    """Of one sequence of so many steps, each memory block counted once."""
    kept: dict[int, int] = {}
    held: list[Tensor] = []  # until all are counted, so that no block is freed and its address used again

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        held.append(tensor)
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    obs = torch.from_numpy(np.zeros((steps, 1, *spec.observation_shape), spec.observation_dtype))
    seen = Seen(
        obs,
        torch.zeros(steps, 1, dtype=torch.bool),
        torch.zeros(steps, 1, dtype=torch.int64),
        torch.zeros(steps, 1),
        torch.zeros(steps, 1, num_components),
    )
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        network(seen, network.initial_state(1))
    return sum(kept.values())


def memory_bytes() -> int | None:
    """Memory of this machine, or of the container that the process lives in; None where it cannot be told."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits) if limits else None


def check_fits(plan: MemoryPlan, available_bytes: int | None) -> None:
    if available_bytes is not None and plan.total_bytes > available_bytes:
        raise UserError(
            f"this configuration does not fit: {plan.text()}, and there are {available_bytes / GIB:.1f} GiB. Lower "
            "--env.num-envs, --data.replay-span-windows or --data.sequence-steps."
        )
