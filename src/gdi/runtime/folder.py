"""The run folder: its name, its config, and whether a run may start or resume in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gdi.config import Config, NotTrustedError, config_from_json, differences, own_classes, own_modules
from gdi.errors import UserError
from gdi.runtime.checkpoint import BEST
from gdi.runtime.events import Event
from gdi.runtime.lock import LOCK
from gdi.runtime.manifest import CorruptCheckpointError, read_facts
from gdi.runtime.run_log import EPISODES, METRICS, NOTICES, TENSORBOARD, read_metrics
from gdi.runtime.seal import SEAL, is_sealed, write_seal
from gdi.runtime.storage import NO_ROOM, check_files, read_bytes, replace_file, storage_error, writing

CONFIG, CHECKPOINTS = "config.json", "checkpoints"
CHANGED = (
    "cannot resume {}: config.json was changed since its newest checkpoint was written. Put the old one back, or start "
    "a new run in another --run-dir."
)
SEAL_BROKEN = " Its seal does not match: config.json was changed since gdi wrote it, or another user wrote it."
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


def read_config(
    run_dir: Path, *, classes: Iterable[type] = (), modules: Iterable[str] = (), trust: bool = False
) -> Config:
    """Return the config that a run folder was created with.

    A folder that names modules outside gdi is opened if this user made it here, if the caller names them too by
    ``classes`` or ``modules``, or with ``trust``.
    """
    if not run_dir.is_dir():
        raise UserError(f"run folder {run_dir} does not exist.")
    try:
        data = read_bytes(run_dir / CONFIG)
        text = data.decode()
    except FileNotFoundError:
        raise UserError(f"{run_dir} is not a run folder: it has no {CONFIG}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{run_dir / CONFIG} cannot be read: {error}.") from None
    try:
        trust = trust or is_sealed(run_dir, data)
        return config_from_json(text, classes=classes, modules=modules, trust=trust)
    except NotTrustedError as error:
        raise UserError(f"{error}{SEAL_BROKEN if (run_dir / SEAL).exists() else ''}") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{run_dir / CONFIG} cannot be read: {error}.") from None


def config_hash(run_dir: Path) -> str:
    """Return the SHA-256 of ``config.json`` as it is now."""
    return hashlib.sha256(read_bytes(run_dir / CONFIG)).hexdigest()


def is_config_changed(run_dir: Path) -> bool:
    """Return True if ``config.json`` is not the one of the newest checkpoint whose manifest can be read."""
    for path in sorted((run_dir / CHECKPOINTS).glob("step-*"), reverse=True):
        with suppress(CorruptCheckpointError, UserError, ValueError, OSError):
            return read_facts(path).config not in (None, config_hash(run_dir))
    return False


def has_lost_checkpoints(run_dir: Path, config: Config) -> bool:
    """Return True if the run has no checkpoint but had one.

    A run that was killed before its first checkpoint may have logged up to that checkpoint's step, because the log line
    is written first. A log with later lines shows that a checkpoint existed.
    """
    folder = run_dir / CHECKPOINTS
    if any(folder.glob("step-*")):
        return False
    if (folder / BEST).exists():
        return True
    due = {line.get("steps", 0) for line in logged(run_dir, "train")}
    return len({steps for steps in due if steps >= config.run.checkpoint_every_steps}) > 1 or bool(
        logged(run_dir, "evaluation")
    )


def logged(run_dir: Path, kind: str) -> list[Event]:
    """Return the readable lines of one kind, and none if there is no log."""
    return read_metrics(run_dir, kind) if (run_dir / METRICS).exists() else []


def is_untrained(run_dir: Path) -> bool:
    """Return True if a run began in the folder, but nothing was trained and nothing else is there.

    A full disk or a kill at the very start leaves such a folder.
    """
    names = {path.name for path in run_dir.iterdir()}
    begun = {CONFIG, f".{CONFIG}.part", LOCK, CHECKPOINTS}
    if not names & begun or names - begun - {SEAL, METRICS, EPISODES, NOTICES, TENSORBOARD}:
        return False
    if (run_dir / CHECKPOINTS).is_dir() and any((run_dir / CHECKPOINTS).iterdir()):
        return False
    lines = {name: read_bytes(run_dir / name).count(b"\n") for name in {METRICS, EPISODES} & names}
    return lines.get(METRICS, 0) == 0 and lines.get(EPISODES, 0) <= 1  # the header


def holds_run(run_dir: Path) -> bool:
    """Return True if the folder holds a run that can be continued, or anything else that must not be overwritten."""
    if not (run_dir.is_dir() and any(run_dir.iterdir())):
        return False
    return (run_dir / CONFIG).exists() or not is_untrained(run_dir)


def check_run_dir(run_dir: Path, config: Config, *, resume: bool) -> bool:
    """Check that a run may start in the folder or continue there; return True if it continues. Write nothing."""
    try:
        if run_dir.exists() and not run_dir.is_dir():
            raise UserError(f"{run_dir} is a file: give --run-dir a folder.")
        check_files(run_dir)
        if not holds_run(run_dir) or (is_untrained(run_dir) and not resume):
            return False
    # The folder is not readable, or its name is too long for the disk.
    except OSError as error:
        raise UserError(f"{run_dir} cannot be a run folder: {error.strerror}.") from None
    if not resume and not (run_dir / CONFIG).exists():
        raise UserError(f"{run_dir} is not empty and holds other files: choose another --run-dir.")
    if not resume:
        raise UserError(f"{run_dir} is not empty: continue that run with --resume, or choose another --run-dir.")
    stored = read_config(run_dir, classes=own_classes(config), modules=own_modules(config))
    for name, old, new in differences(stored, config):
        if name in MAY_CHANGE:
            continue
        raise UserError(
            f"cannot resume {run_dir}: {name} was {old!r} and is now {new!r}. A run keeps its config: start a new "
            "one in another --run-dir."
        )
    if is_config_changed(run_dir):
        raise UserError(CHANGED.format(run_dir))
    if has_lost_checkpoints(run_dir, config):
        raise UserError(
            f"cannot resume {run_dir}: its checkpoints are missing. Start a new run in another --run-dir. "
            "The old logs are untouched."
        )
    return True


def make_run_dir(run_dir: Path) -> None:
    """Make the folder of a run if it does not exist."""
    try:
        (run_dir / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise storage_error(run_dir, error) from None
        raise UserError(f"cannot write the run folder {run_dir}: {error.strerror}.") from None


def write_config(run_dir: Path, config: bytes, *, seal: bool) -> None:
    """Write ``config.json`` completely or not at all, with the user's seal if it names modules."""
    with writing(run_dir):
        replace_file(run_dir / CONFIG, config)
    if seal:
        write_seal(run_dir, config)
