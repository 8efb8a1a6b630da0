"""The Python API: ``train(config)`` and ``load(run_dir)``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

from gdi.agent import Agent
from gdi.config import Config, validate
from gdi.errors import UserError
from gdi.placement import PlacementConfig, validate_placement
from gdi.presets import make_config
from gdi.report.console import NullConsole
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.events import Sink, SinkList
from gdi.runtime.folder import CHECKPOINTS, CONFIG, config_hash, default_run_dir, read_config
from gdi.runtime.local import build
from gdi.runtime.run import System
from gdi.runtime.session import Session, TrainResult
from gdi.runtime.tree import loading

__all__ = ["Agent", "ClosableSink", "TrainResult", "load", "train"]


class ClosableSink(Sink, Protocol):
    """A sink that the run closes at its end."""

    def close(self) -> None: ...


def train(
    config: Config,
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    console: ClosableSink | None = None,
    runtime: Literal["local", "ray"] = "local",
    placement: PlacementConfig | None = None,
    ray_address: str = "",
) -> TrainResult:
    """Train an agent; ``run_dir`` holds config, logs and checkpoints (default: a new one in ``runs/``).

    With ``resume``, a stopped run continues from its newest complete checkpoint. If the folder is empty or missing, the
    run starts from the beginning. The same config on the same machine gives the same run. ``runtime="ray"`` runs the
    agent on the Ray cluster at ``ray_address``, as ``placement`` says. By default, a cluster is started on this
    machine.
    """
    if not isinstance(config, Config):
        raise UserError(
            f'gdi.train takes a config, not {config!r:.60}: make one, as in gdi.make_config("gdi-i3", ENV).'
        )
    validate(config)
    folder = default_run_dir(config) if run_dir is None else Path(run_dir)
    if runtime not in ("local", "ray"):
        raise UserError(f"unknown runtime {runtime!r}: choose local or ray.")
    if runtime == "local" and (ray_address or placement not in (None, PlacementConfig())):
        raise UserError("ray_address and placement need runtime='ray': set it, or drop them.")
    with closing(console or NullConsole()) as screen:
        watchers = SinkList(screen)
        if runtime == "local":
            return Session(lambda: build(config), config, folder, watchers).train(resume=resume, runtime=runtime)
        placement = validate_placement(placement or PlacementConfig(), config)
        from gdi.runtime.ray.cluster import cluster

        with cluster(ray_address, placement):
            from gdi.runtime.ray.actor_count import ActorCount
            from gdi.runtime.ray.system import RaySystem  # this import needs Ray

            wanted = ActorCount(placement.actors, folder)

            def place() -> System:
                return RaySystem(config, placement, watchers.notice, wanted)

            return Session(place, config, folder, watchers).train(resume=resume, runtime=runtime)


def _with_env(config: Config, env: Any) -> Config:
    """Return the config of a run with its environment as the caller gives it again."""
    given = make_config(config.preset, env, scale=config.scale).env
    if given.id != config.env.id:
        raise UserError(f"env is {given.id}, which is another environment than the run's, {config.env.id}: pass that.")
    return replace(config, env=replace(config.env, given=given.given))


def load(
    run_dir: str | Path,
    *,
    best: bool = False,
    seed: int = 0,
    warn: Callable[[str], None] | None = None,
    classes: Iterable[type] = (),
    trust: bool = False,
    env: Any = None,
) -> Agent:
    """Load the agent of a run from its newest checkpoint, or with ``best`` from the best-evaluated one.

    ``warn`` receives what is wrong with the folder but does not prevent loading; by default it is a Python warning.
    A run with your own controller or algorithm names its class. Pass that class in ``classes``, or set ``trust`` to
    import every module that the folder names. If the environment was given as a Python object, pass it in ``env``.
    """
    folder = Path(run_dir)
    tell = warn or (lambda text: warnings.warn(text, stacklevel=3))
    config = validate(read_config(folder, classes=classes, trust=trust))
    if env is not None:
        config = _with_env(config, env)
    store = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, tell)
    state = store.best() if best else store.newest(replay=False)
    if state is None:
        raise UserError(f"{folder} has no checkpoint yet: let it train a little longer.")
    with loading(str(folder)):
        agent = Agent(config, state, seed)
    if store.facts.config not in (None, config_hash(folder)):
        tell(f"{folder / CONFIG} was changed after its checkpoint was written: the agent may play otherwise.")
    return agent
