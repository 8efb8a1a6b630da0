"""The Python API: ``train(config)`` and ``load(run_dir)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Literal, Protocol

from gdi.agent import Agent
from gdi.config import Config, validate
from gdi.errors import UserError
from gdi.placement import PlacementConfig, validate_placement
from gdi.report.console import Quiet
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.events import Notices, Sink
from gdi.runtime.folder import CHECKPOINTS, default_run_dir, read_config
from gdi.runtime.local import build
from gdi.runtime.run import System
from gdi.runtime.session import Session, TrainResult

__all__ = ["Agent", "TrainResult", "Watcher", "load", "train"]


class Watcher(Sink, Protocol):
    """A sink that is closed at the end."""

    def close(self) -> None: ...


def train(
    config: Config,
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    console: Watcher | None = None,
    runtime: Literal["local", "ray"] = "local",
    placement: PlacementConfig | None = None,
    ray_address: str = "",
) -> TrainResult:
    """Train an agent; ``run_dir`` keeps config, logs and checkpoints (by default a new folder under ``runs/``).

    With ``resume`` a run that was stopped continues from its newest whole checkpoint; a folder that is empty or missing
    simply starts. Same config, same machine: same run. ``runtime="ray"`` puts the parts on the Ray cluster at
    ``ray_address`` (by default one that is started on this machine) as ``placement`` says.
    """
    validate(config)
    folder = default_run_dir(config) if run_dir is None else Path(run_dir)
    if runtime not in ("local", "ray"):
        raise UserError(f"unknown runtime {runtime!r}: there are local and ray.")
    if runtime == "local" and (ray_address or placement not in (None, PlacementConfig())):
        raise UserError("ray_address and placement are for runtime='ray'.")
    with closing(console or Quiet()) as screen:
        watchers = Notices(screen)
        if runtime == "local":
            return Session(lambda: build(config), config, folder, watchers).train(resume=resume, runtime=runtime)
        placement = validate_placement(placement or PlacementConfig(), config)
        from gdi.runtime.ray.cluster import cluster

        with cluster(ray_address, placement):
            from gdi.runtime.ray.system import RaySystem  # not before: it needs Ray
            from gdi.runtime.ray.wanted import Wanted

            wanted = Wanted(placement.actors, folder)

            def place() -> System:
                return RaySystem(config, placement, watchers.notice, wanted)

            return Session(place, config, folder, watchers).train(resume=resume, runtime=runtime)


def load(
    run_dir: str | Path,
    *,
    best: bool = False,
    seed: int = 0,
    warn: Callable[[str], None] | None = None,
    classes: Iterable[type] = (),
    trust: bool = False,
) -> Agent:
    """The agent of a run: its newest checkpoint, or (``best``) the one with the best evaluation.

    A run of your own controller or algorithm names its class: pass it in ``classes``, or say ``trust`` to import
    whatever the folder names.
    """
    folder = Path(run_dir)
    config = validate(read_config(folder, classes=classes, trust=trust))
    store = CheckpointStore(folder / CHECKPOINTS, config.run.keep_checkpoints, warn or (lambda text: None))
    state = store.best() if best else store.newest()
    if state is None:
        raise UserError(f"{folder} has no checkpoint yet: let it train a little longer.")
    return Agent(config, state, seed)
