"""The seal of a run folder, which shows that this user made it on this machine.

A config may name modules, such as that of an environment, and opening it runs their code. A user's own runs open
without a question, and a folder from elsewhere does not. The owner of the files shows nothing, because unpacking an
archive makes the reader their owner. The seal is a code over ``config.json`` by a key that only the user can read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from gdi.runtime.storage import read_bytes, replace_file

SEAL = ".seal"
KEY_BYTES = 32


def state_folder() -> Path:
    """Return the folder of what gdi remembers of this user: ``$XDG_STATE_HOME/gdi``."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state") / "gdi"


def write_seal(run_dir: Path, config: bytes) -> None:
    """Seal a new run folder with this config. Without a home folder there is no seal, and opening it needs trust."""
    with suppress(OSError, RuntimeError):  # Path.home raises RuntimeError
        replace_file(run_dir / SEAL, _code(_make_key(), config).encode())


def is_sealed(run_dir: Path, config: bytes) -> bool:
    """Return True if this user made the folder here, with exactly this config."""
    try:
        key, seal = read_bytes(_key_file()), read_bytes(run_dir / SEAL)
    except (OSError, RuntimeError):
        return False
    return len(key) == KEY_BYTES and hmac.compare_digest(_code(key, config).encode(), seal)


def _key_file() -> Path:
    return state_folder() / "key"


def _code(key: bytes, config: bytes) -> str:
    return hmac.new(key, config, hashlib.sha256).hexdigest()


def _make_key() -> bytes:
    """Return the user's key, which is made once. Another process may make it at the same moment."""
    path = _key_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".key.{os.getpid()}.part")
    if not path.exists():
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
    return path.read_bytes()
