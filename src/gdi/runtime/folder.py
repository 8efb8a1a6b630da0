"""The run folder: its name, its config, and whether a run may start or resume in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from gdi.config import Config, config_from_json, config_to_json, differences, own_classes
from gdi.errors import UserError
from gdi.runtime.checkpoint import BEST
from gdi.runtime.run_log import METRICS, read_metrics

CONFIG, CHECKPOINTS = "config.json", "checkpoints"
# Settings that do not affect training. Runs that are older than such a setting can therefore be resumed.
MAY_CHANGE = ("run.states_per_stage",)


def default_run_dir(config: Config) -> Path:
    """Return a new path such as ``runs/CartPole-v1-gdi-i3-seed11-20260131-120000``.

    The path never exists yet.
    """
    stem = f"{config.env.id.replace('/', '-').replace(':', '-')}-{config.preset}-seed{config.seed}"
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    path = Path("runs") / f"{stem}-{stamp}"
    number = 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{stem}-{stamp}-{number}"
    return path


def read_config(run_dir: Path, *, classes: Iterable[type] = (), trust: bool = False) -> Config:
    """Return the config that a run folder was created with.

    A folder that names a class outside gdi is opened only if the caller passes that class or sets ``trust``.
    """
    if not run_dir.is_dir():
        raise UserError(f"run folder {run_dir} does not exist.")
    try:
        text = (run_dir / CONFIG).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{run_dir} is not a run folder: it has no {CONFIG}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{run_dir / CONFIG} cannot be read: {error}.") from None
    try:
        return config_from_json(text, classes=classes, trust=trust)
    except (ValueError, TypeError) as error:
        raise UserError(f"{run_dir / CONFIG} cannot be read: {error}.") from None


def has_lost_checkpoints(run_dir: Path, config: Config) -> bool:
    """Return True if the run has no checkpoint but had one.

    A run that was killed before its first checkpoint may have logged up to that checkpoint's step, because the log line
    is written first. A log with later lines shows that a checkpoint existed.
    """
    folder = run_dir / CHECKPOINTS
    if any(folder.glob("step-*")):
        return False
    if not folder.is_dir() or (folder / BEST).exists():
        return True
    if not (run_dir / METRICS).exists():
        return False
    due = {line["steps"] for line in read_metrics(run_dir, "train")}
    return len({steps for steps in due if steps >= config.run.checkpoint_every_steps}) > 1 or bool(
        read_metrics(run_dir, "evaluation")
    )


def prepare_run_dir(run_dir: Path, config: Config, *, resume: bool) -> bool:
    """Create the run folder, or check that it can be resumed; return True if it is resumed.

    Nothing is overwritten.
    """
    try:
        taken = run_dir.is_dir() and any(run_dir.iterdir())
    # The folder is not readable, or its name is too long for the disk.
    except OSError as error:
        raise UserError(f"{run_dir} cannot be a run folder: {error.strerror}.") from None
    if run_dir.exists() and not run_dir.is_dir():
        raise UserError(f"{run_dir} is a file: give --run-dir a folder.")
    if taken:
        if not resume:
            raise UserError(f"{run_dir} is not empty: continue that run with --resume, or choose another --run-dir.")
        for name, old, new in differences(read_config(run_dir, classes=own_classes(config)), config):
            if name in MAY_CHANGE:
                continue
            raise UserError(
                f"cannot resume {run_dir}: {name} was {old!r} and is now {new!r}. A run keeps its config: start a new "
                "one in another --run-dir."
            )
        if has_lost_checkpoints(run_dir, config):
            raise UserError(
                f"cannot resume {run_dir}: its checkpoints are missing. Start a new run in another --run-dir. "
                "The old logs are untouched."
            )
        return True
    try:
        (run_dir / CHECKPOINTS).mkdir(parents=True)
        part = run_dir / f".{CONFIG}.part"
        part.write_text(config_to_json(config), encoding="utf-8")
        part.rename(run_dir / CONFIG)
    except OSError as error:
        raise UserError(f"cannot write the run folder {run_dir}: {error.strerror}.") from None
    return False
