"""Placement: the processes of a run on Ray and their resources. It is not part of a run's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import gcd
from typing import ClassVar

from gdi.config import Config, ExactReplayConfig, check_types, learner_traits
from gdi.errors import UserError


@dataclass(frozen=True)
class PlacementConfig:
    """Processes of a run on Ray and their resources. A run may be resumed with a different placement."""

    at_most: ClassVar[Mapping[str, float]] = {
        **{"actors": 10**5, "envs_per_actor": 65_536, "learners": 1_024, "queue_windows": 10**4},
        **{"actor_cpus": 4_096, "learner_cpus": 4_096, "evaluator_cpus": 4_096},
        **{"actor_gpus": 1_024, "learner_gpus": 1_024, "evaluator_gpus": 1_024},
    }

    actors: int = 1
    """Number of actors, each a process with separate environments. It may change during a run (gdi actors)."""
    envs_per_actor: int = 0
    """Number of environments per actor; 0 divides --env.num-envs evenly."""
    actor_cpus: float = 1.0
    """Number of CPUs that Ray reserves per actor. Rounded down, it is also the number of threads, at least 1."""
    actor_gpus: float = 0.0
    """Number of GPUs per actor; 0.5 is half a GPU."""
    learners: int = 1
    """Number of learners, one per GPU. They share every batch and sum their gradients with torch.distributed."""
    learner_cpus: float = 1.0
    """Number of CPUs per learner, and of its threads."""
    learner_gpus: float = 0.0
    """Number of GPUs per learner."""
    evaluator_cpus: float = 1.0
    """Number of CPUs for the evaluator, and of its threads."""
    evaluator_gpus: float = 0.0
    """Number of GPUs for the evaluator."""
    queue_windows: int = 2
    """Number of windows that an actor may be ahead of the learner, with the one it plays. Then it pauses."""
    insecure: bool = False
    """Let a Ray that this run starts listen on all interfaces, without a token if its version has none."""
    lockstep: bool = False
    """Let one actor and the learner take turns, for exactly the same run as the local runtime. It is slow."""
    hang_seconds: float = 300.0
    """Seconds that an actor may take to start or to play one window, before it is killed and replaced."""
    stall_seconds: float = 900.0
    """Seconds without a window or an update after which the run stops and shows the first error."""


def validate_placement(placement: PlacementConfig, config: Config) -> PlacementConfig:
    """Return the placement, or raise UserError with the first thing that cannot work for this config."""
    check_types(placement, "--placement.")

    def need(condition: bool, message: str) -> None:
        if not condition:
            raise UserError(f"--placement.{message}")

    for name in ("actors", "learners", "queue_windows", "hang_seconds", "stall_seconds"):
        need(getattr(placement, name) > 0, f"{name.replace('_', '-')} must be greater than 0.")
    for f in fields(placement):
        need(getattr(placement, f.name) >= 0, f"{f.name.replace('_', '-')} must be 0 or more.")
    if placement.learners > 1 and config.network.normalize:
        raise UserError(
            "--network.normalize needs one learner, which sees whole batches: drop it, or set --placement.learners 1."
        )
    num_envs = config.env.num_envs
    need(
        placement.envs_per_actor > 0 or num_envs % placement.actors == 0,
        f"actors {placement.actors} cannot divide --env.num-envs {num_envs} evenly: change one of them, or set "
        "--placement.envs-per-actor.",
    )
    _check_share(placement, config)
    need(
        not config.run.device.startswith("cuda") or placement.learner_gpus > 0,
        f"learner-gpus is 0, but --run.device is {config.run.device}: set --placement.learner-gpus 1.",
    )
    need(
        placement.learners == 1 or not getattr(config.learner, "normalize_advantages", False),
        f"learners {placement.learners} would each standardize advantages over their own share of a minibatch: use "
        "one learner, or add --learner.no-normalize-advantages.",
    )
    if placement.lockstep:
        need(placement.actors == 1, "lockstep needs exactly one actor: drop --placement.actors.")
        need(not config.run.overlap, "lockstep acts and learns in turns: add --run.no-overlap.")
    return placement


def _check_share(placement: PlacementConfig, config: Config) -> None:
    """Raise UserError unless batches divide the window of one actor, for a learner that trains each window at once.

    Otherwise a batch would reach into the next pass over the same window, and train some transitions twice.
    """
    data, num_envs = config.data, placement.envs_per_actor or config.env.num_envs // placement.actors
    if not (isinstance(data, ExactReplayConfig) and learner_traits(config.learner).trains_at_once):
        return
    per_env = data.sequence_steps // (data.slice_steps or data.sequence_steps)
    batch, slices = data.batch_size_sequences, num_envs * per_env
    if slices % batch == 0:
        return
    fitting_envs = batch // gcd(batch, per_env)
    fitting_batch = max(size for size in range(1, min(batch, slices) + 1) if slices % size == 0)
    raise UserError(
        f"--data.batch-size-sequences {batch} does not divide the {slices} slices of an actor's window "
        f"({num_envs} environments x {data.sequence_steps} steps): set --placement.envs-per-actor {fitting_envs}, or "
        f"--data.batch-size-sequences {fitting_batch}."
    )
