"""The 57 Atari games of the benchmark, and one spelling for each out of the many in use."""

from __future__ import annotations

import re
from functools import cache

from gdi.errors import UserError, nearest
from gdi.scores.data import read_csv

# The 57 games in the order of the paper's tables (alphabetical).
GAMES: tuple[str, ...] = tuple(row["game"] for row in read_csv("baselines.csv"))

# ALE games that Gym ships but that have no place among the 57: a file that has them is not misspelt.
OUTSIDE = ("adventure", "air_raid", "carnival", "elevator_action", "journey_escape", "pooyan")

# Spellings that differ from ours by more than case, punctuation and Gym's decoration.
ALIASES = {
    "montezumasrevenge": "montezuma_revenge",
    "montezuma": "montezuma_revenge",
    "upanddown": "up_n_down",
    "jamesbond007": "jamesbond",
    "tutankhamun": "tutankham",
    "kungfu": "kung_fu_master",
}

_DECORATION = re.compile(r"(NoFrameskip|Deterministic|-ram|-ramNoFrameskip|-ramDeterministic)?(-v\d+)?$", re.IGNORECASE)


# MinAtar/Breakout-v1 is another game than ALE/Breakout-v5, so only these namespaces are taken off.
_NAMESPACE = re.compile(r"^(ale|atari)/", re.IGNORECASE)


def _bare(name: str) -> str:
    """Without ``ALE/`` and Gym's suffixes: ``ALE/MsPacman-v5`` -> ``MsPacman``."""
    return _DECORATION.sub("", _NAMESPACE.sub("", name.strip()))


def _key(name: str) -> str:
    """Letters and digits of the bare name: ``Ms. Pac-Man`` -> ``mspacman``."""
    return re.sub(r"[^a-z0-9]", "", _bare(name).lower())


@cache
def _by_key() -> dict[str, str]:
    return {_key(name): name for name in (*GAMES, *OUTSIDE)} | ALIASES


def find_game(name: str) -> str | None:
    """Our name of a game in any usual spelling, or None. Also knows the games in `OUTSIDE`."""
    return _by_key().get(_key(name))


def canonical_game(name: str) -> str:
    """Our name of one of the 57 games; anything else is a `UserError` with the nearest names."""
    found = find_game(name)
    if found is None:
        raise UserError(f"unknown Atari game {name!r}.{suggest(name)} `gdi envs` lists the 57.")
    if found in OUTSIDE:
        raise UserError(f"{name!r} is an Atari game, but not one of the benchmark's 57.")
    return found


def suggest(name: str) -> str:
    """`` Did you mean ...?`` for a misspelt game."""
    return nearest(_spaced(name), GAMES)


def title(game: str) -> str:
    """``ms_pacman`` -> ``ms pacman``, as the paper prints it."""
    return game.replace("_", " ")


def _spaced(name: str) -> str:
    """``ALE/MsPackman-v5`` -> ``ms_packman``, so that the distance to our names is that of the misspelling alone."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _bare(name)).lower()).strip("_")
