"""One spelling per environment: ``pong``, ``Pong-v5`` and ``ALE/Pong-v5`` are the same game."""

from __future__ import annotations

from gdi.errors import UserError
from gdi.scores.games import GAMES, canonical_game, find_game

ATARI = "ALE/"


def atari_id(game: str) -> str:
    """``ms_pacman`` -> ``ALE/MsPacman-v5``."""
    return f"{ATARI}{''.join(word.capitalize() for word in game.split('_'))}-v5"


def is_atari(env_id: str) -> bool:
    return env_id.startswith(ATARI)


def canonical_env_id(env_id: str) -> str:
    """The id as it is kept; any usual spelling of one of the 57 Atari games becomes ``ALE/Name-v5``.

    An ``ALE/`` id that names no such game is a UserError with the nearest names; what is no Atari game stays as it is.
    """
    if "-ram" in env_id.lower() and (env_id.upper().startswith(ATARI) or find_game(env_id) in GAMES):
        raise UserError(f"{env_id} shows the console's memory; here Atari games are images, such as ALE/Pong-v5.")
    if env_id.upper().startswith(ATARI):
        return atari_id(canonical_game(env_id))
    if "/" in env_id or ":" in env_id or find_game(env_id) not in GAMES:
        return env_id
    return atari_id(canonical_game(env_id))
