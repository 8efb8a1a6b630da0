"""The 57 Atari games of the benchmark, with one name for all common spellings."""

from __future__ import annotations

import re
from functools import cache

from gdi.errors import UserError, did_you_mean
from gdi.scores.data import read_csv

# The 57 games in the order of the paper's tables (alphabetical).
GAMES: tuple[str, ...] = tuple(row["game"] for row in read_csv("baselines.csv"))

# ALE games that Gym ships but that are not among the 57. A file that contains them is not misspelled.
NON_BENCHMARK_GAMES = ("adventure", "air_raid", "carnival", "elevator_action", "journey_escape", "pooyan")

# These spellings differ from ours by more than case, punctuation and Gym's prefix and suffix.
ALIASES = {
    "montezumasrevenge": "montezuma_revenge",
    "montezuma": "montezuma_revenge",
    "upanddown": "up_n_down",
    "jamesbond007": "jamesbond",
    "tutankhamun": "tutankham",
    "kungfu": "kung_fu_master",
}

_DECORATION = re.compile(r"(NoFrameskip|Deterministic|-ram|-ramNoFrameskip|-ramDeterministic)?(-v\d+)?$", re.IGNORECASE)


# MinAtar/Breakout-v1 and ALE/Breakout-v5 are different games, so only these namespaces are removed.
_NAMESPACE = re.compile(r"^(ale|atari)/", re.IGNORECASE)


def _bare(name: str) -> str:
    """Remove ``ALE/`` and Gym's suffixes: ``ALE/MsPacman-v5`` -> ``MsPacman``."""
    return _DECORATION.sub("", _NAMESPACE.sub("", name.strip()))


def _key(name: str) -> str:
    """Return letters and digits of the bare name: ``Ms. Pac-Man`` -> ``mspacman``."""
    return re.sub(r"[^a-z0-9]", "", _bare(name).lower())


@cache
def _by_key() -> dict[str, str]:
    return {_key(name): name for name in (*GAMES, *NON_BENCHMARK_GAMES)} | ALIASES


def find_game(name: str) -> str | None:
    """Return our name of a game in any common spelling, or None.

    The games in `NON_BENCHMARK_GAMES` are known as well.
    """
    return _by_key().get(_key(name)) if name.strip().isprintable() else None


def canonical_game(name: str) -> str:
    """Return our name of one of the 57 games, or raise `UserError` with the nearest names."""
    found = find_game(name)
    if found is None:
        raise UserError(f"unknown Atari game {name!r}.{suggest(name)} `gdi envs` lists the 57.")
    if found in NON_BENCHMARK_GAMES:
        raise UserError(f"{name!r} is an Atari game, but not one of the benchmark's 57: drop it.")
    return found


def suggest(name: str) -> str:
    """Return `` Did you mean ...?`` for a misspelled game."""
    return did_you_mean(_spaced(name), GAMES)


def title(game: str) -> str:
    """Return a name as the paper prints it: ``ms_pacman`` -> ``ms pacman``."""
    return game.replace("_", " ")


def _spaced(name: str) -> str:
    """Convert ``ALE/MsPackman-v5`` to ``ms_packman``, so that only the misspelling counts as distance."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _bare(name)).lower()).strip("_")
