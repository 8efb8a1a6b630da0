"""The memory plan: how much memory a run will need, and into what chunks it splits a batch.

The plan is computed from the config and one measured number: what the real network keeps per step for backpropagation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gdi.config import Config, SampledReplayConfig
from gdi.data.slots import GATHER_BYTES
from gdi.envs import EnvSpec
from gdi.errors import UserError
from gdi.evaluation.evaluator import num_envs_for
from gdi.index_space import make_index_space
from gdi.networks import AgentNetwork, Seen

GIB = 1 << 30
# Limit on what all chunks that are trained in parallel keep for backpropagation. It is fixed, so that a run's sums do
# not depend on the machine. It is large enough that convolutions lose no speed.
ACTIVATION_BYTES = 2 * GIB
# Gradients add at most about half as much again to the kept activations. This was measured on all torsos.
BACKWARD_FACTOR = 1.5
PROGRAM_BYTES = 500 << 20  # Python, torch and its kernels
EMULATOR_BYTES = 3 << 20  # one copy of an environment
# The learner has θ, its gradient and two moments. The parameter server, a push in transit, the actor and the evaluator
# have one copy each.
PARAMETER_COPIES = 8
# Per step: action, reward, flags, μ, λ, version, and the previous action and reward.
SCALARS_BYTES = 64


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by purpose, and the number of sequences that are trained at once (0: the whole batch).

    With a GPU, learning and the network use its memory. The plan counts all memory as if it were in one place.
    """

    bytes_by_purpose: dict[str, int]
    chunk_sequences: int
    capacity_transitions: int = 0  # of a sampled replay

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes_by_purpose.values())

    def summary(self) -> str:
        shown = {name: f"{size / GIB:.2f}" for name, size in self.bytes_by_purpose.items()}
        parts = ", ".join(f"{name} {size}" for name, size in shown.items() if size != "0.00")
        chunks = f"; batches in chunks of {self.chunk_sequences} sequences" if self.chunk_sequences else ""
        return f"Memory: at most about {self.total_bytes / GIB:.1f} GiB ({parts}){chunks}"


def plan_memory(config: Config, spec: EnvSpec, network: AgentNetwork, learners: int = 1) -> MemoryPlan:
    """Return the plan of a run whose batches so many learners share. Each has its own copy of a sampled replay."""
    data, num_envs, workers = config.data, config.env.num_envs, config.run.workers
    length = data.window_steps
    state_bytes = network.initial_state(1).numel() * 4
    # A stored sequence has each frame once, the scalars, and the recurrent state at its first step.
    sequence_bytes = _rows_bytes(spec, length) + state_bytes
    kept_step_bytes = saved_bytes_per_step(network, spec, len(make_index_space(config.index_space).names))
    kept_bytes = int(kept_step_bytes * (data.sequence_steps + 1) * BACKWARD_FACTOR)
    eval_envs = num_envs_for(config.evaluation.episodes)
    at_once = math.ceil(data.batch_size_sequences / workers)
    chunk = max(1, min(at_once, ACTIVATION_BYTES // (kept_bytes * workers)))
    observation_bytes = math.prod(spec.observation_shape) * (spec.observation_dtype.itemsize + 4)
    parameter_bytes = sum(p.numel() * p.element_size() for p in network.parameters())
    if isinstance(data, SampledReplayConfig):
        stored = _sampled_bytes(data, num_envs, spec, learners)
    else:
        held = data.held_windows(num_envs) * num_envs * sequence_bytes
        stored = {
            "sequences": held + 2 * num_envs * length * state_bytes,
            "batch": data.batch_size_sequences * sequence_bytes,
        }
    return MemoryPlan(
        {
            **stored,
            "learning": workers * chunk * (kept_bytes + (length + 1) * observation_bytes),
            "network": (PARAMETER_COPIES + workers) * parameter_bytes,
            "acting": (num_envs + eval_envs) * (EMULATOR_BYTES + kept_step_bytes),
            "program": PROGRAM_BYTES,
        },
        0 if chunk == data.batch_size_sequences else chunk,
        data.capacity_transitions if isinstance(data, SampledReplayConfig) else 0,
    )


def _rows_bytes(spec: EnvSpec, rows: int) -> int:
    """Return the bytes of one environment's stored steps, with the frames in front of them and one behind."""
    frame_bytes = math.prod(spec.frame_shape) * spec.observation_dtype.itemsize
    frame_bytes += 4 * spec.vector_width + spec.has_mask * spec.num_actions
    return (spec.frame_stack + rows) * frame_bytes + rows * SCALARS_BYTES


def _sampled_bytes(data: SampledReplayConfig, num_envs: int, spec: EnvSpec, learners: int) -> dict[str, int]:
    """Return the bytes of a sampled replay, of windows on their way to it, and of the batches of one iteration."""
    slot = num_envs * _rows_bytes(spec, data.sequence_steps * data.slot_windows(num_envs))
    slice_bytes = _rows_bytes(spec, data.slice_steps)
    slices = math.ceil(num_envs * data.sequence_steps * data.slices_per_transition)
    return {
        "replay": learners * data.num_slots(num_envs) * slot,
        "sequences": 2 * num_envs * _rows_bytes(spec, data.sequence_steps),
        "batch": max(data.batch_size_sequences * slice_bytes, min(GATHER_BYTES, slices * slice_bytes)),
    }


def saved_bytes_per_step(network: AgentNetwork, spec: EnvSpec, num_components: int) -> int:
    """Return the bytes that autograd keeps per step for the backward pass.

    The result is the difference between two lengths. Weights and their copies in another precision cancel, because each
    length keeps them once.
    """
    few, many = 4, 8
    more = _saved_bytes(network, spec, num_components, many) - _saved_bytes(network, spec, num_components, few)
    return math.ceil(more / (many - few))


def _saved_bytes(network: AgentNetwork, spec: EnvSpec, num_components: int, steps: int) -> int:
    """Return the bytes kept for one sequence of ``steps`` steps, counting each memory block once."""
    kept: dict[int, int] = {}
    # Hold all tensors until they are counted, so that no freed address is reused.
    held: list[Tensor] = []

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
        torch.zeros(steps, 1, spec.vector_width),
        torch.zeros(steps, 1, 0, dtype=torch.bool),
    )
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        network(seen, network.initial_state(1))
    return sum(kept.values())


def check_fits(plan: MemoryPlan, available_bytes: int | None) -> None:
    if available_bytes is None or plan.total_bytes <= available_bytes:
        return
    lower = "Lower --env.num-envs, --data.replay-span-windows or --data.sequence-steps."
    if plan.capacity_transitions:
        fits = fitting_transitions(plan, available_bytes)
        lower = f"Set --data.capacity-transitions {fits}, which fits." if fits else "Lower --env.num-envs."
    raise UserError(
        f"this configuration does not fit in memory: {plan.summary()}, but only {available_bytes / GIB:.1f} GiB "
        f"are available. {lower}"
    )


def fitting_transitions(plan: MemoryPlan, available_bytes: int) -> int:
    """Return the capacity of a sampled replay that fits, in whole thousands of transitions; 0 if none does."""
    replay = plan.bytes_by_purpose["replay"]
    left = available_bytes - (plan.total_bytes - replay)
    # The replay has one slot more than its capacity needs, which the last thousand pays for.
    return max(0, int(plan.capacity_transitions * left / replay) // 1000 * 1000 - 1000)
