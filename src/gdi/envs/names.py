"""Canonical ids of environments: ``pong``, ``Pong-v5`` and ``ALE/Pong-v5`` name the same game."""

from __future__ import annotations

from pathlib import Path

from gdi.errors import UserError
from gdi.scores.games import GAMES, canonical_game, find_game

ATARI = "ALE/"
# Ids of environments that were given in Python as an object without a name.
GIVEN = "given/"


def atari_id(game: str) -> str:
    """Return the id of a game, such as ``ALE/MsPacman-v5`` for ``ms_pacman``."""
    return f"{ATARI}{''.join(word.capitalize() for word in game.split('_'))}-v5"


def is_atari(env_id: str) -> bool:
    return env_id.startswith(ATARI)


def is_builtin(env_id: str) -> bool:
    """Return True for the environments of this package: Atari, MinAtar and the toys."""
    return env_id.startswith((ATARI, "MinAtar/", "Toy/"))


def is_file_form(env_id: str) -> bool:
    """Return True for an id such as ``my_env.py:MyEnv``."""
    return env_id.rpartition(":")[0].endswith(".py")


def canonical_env_id(env_id: str) -> str:
    """Return the canonical id: all common spellings of the 57 Atari games become ``ALE/Name-v5``.

    A file becomes its absolute path, so that a run can be resumed from any folder. Other ids stay unchanged. Raise
    UserError with the nearest names if an ``ALE/`` id is not one of the games.
    """
    if is_file_form(env_id):
        file, _, name = env_id.rpartition(":")
        return f"{Path(file).expanduser().resolve()}:{name}"
    if "-ram" in env_id.lower() and (env_id.upper().startswith(ATARI) or find_game(env_id) in GAMES):
        raise UserError(
            f"{env_id} has RAM observations, which are not supported: use the image version, such as ALE/Pong-v5."
        )
    if env_id.upper().startswith(ATARI):
        return atari_id(canonical_game(env_id))
    if "/" in env_id or ":" in env_id or find_game(env_id) not in GAMES:
        return env_id
    return atari_id(canonical_game(env_id))
