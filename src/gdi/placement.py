"""Placement: how many of each part a Ray cluster runs, and with what. No part of a run's config."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gdi.config import Config, check_types
from gdi.errors import UserError


@dataclass(frozen=True)
class PlacementConfig:
    """How many of each part a Ray cluster runs, and with what. A run may be resumed with another placement."""

    actors: int = 1
    """Actors, each a process with environments of its own. More may join and some may leave while a run goes on."""
    envs_per_actor: int = 0
    """Environments of each actor; 0 shares --env.num-envs out evenly."""
    actor_cpus: float = 1.0
    """CPUs that Ray reserves for each actor, and (rounded down, at least 1) its threads."""
    actor_gpus: float = 0.0
    """GPUs, or a share of one, for each actor."""
    learners: int = 1
    """Learners that share every batch and sum their gradients with torch.distributed; one per GPU."""
    learner_cpus: float = 1.0
    """CPUs for each learner, and its threads."""
    learner_gpus: float = 0.0
    """GPUs for each learner."""
    evaluator_cpus: float = 1.0
    """CPUs for the evaluator, and its threads."""
    evaluator_gpus: float = 0.0
    """GPUs for the evaluator."""
    queue_windows: int = 2
    """Windows an actor may be ahead of the learner: the one it plays and those that wait. Then it pauses."""
    lockstep: bool = False
    """One actor, nothing ahead: the same run as the local runtime, bit by bit. For tests, not for speed."""
    hang_seconds: float = 300.0
    """An actor that starts, or plays one window, for longer than this is taken for hung, killed and replaced."""
    stall_seconds: float = 900.0
    """Without a window or an update for this long the run stops and shows the first error."""


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
    num_envs = config.env.num_envs
    need(
        placement.envs_per_actor > 0 or num_envs % placement.actors == 0,
        f"actors {placement.actors} cannot share --env.num-envs {num_envs} out evenly: change one of them, or set "
        "--placement.envs-per-actor.",
    )
    need(
        not config.run.device.startswith("cuda") or placement.learner_gpus > 0,
        f"learner-gpus is 0, and --run.device is {config.run.device}: on Ray the placement gives GPUs to processes.",
    )
    if placement.lockstep:
        need(placement.actors == 1, "lockstep means one actor: drop --placement.actors.")
        need(not config.run.overlap, "lockstep samples and learns in turns: add --run.no-overlap.")
    return placement
