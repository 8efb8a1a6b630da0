"""The baselines of each game: the random policy, the average human and the human world record.

There are three versions of this table, because the paper does not print the values that it used:

- ``paper``: the values behind the paper's normalized scores;
- ``printed``: the table as printed;
- ``standard``: the random and human scores that most papers use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gdi.errors import UserError, did_you_mean
from gdi.scores.data import read_csv
from gdi.scores.games import GAMES

Array = NDArray[np.float64]

REFERENCES = ("paper", "printed", "standard")
_COLUMNS = ("random", "human", "world_record")


@dataclass(frozen=True)
class Reference:
    """Three scores per game, each an array over the 57 games in the order of `gdi.scores.games`."""

    name: str
    random: Array
    human: Array
    world_record: Array

    def restricted_to(self, keep: NDArray[np.bool_]) -> Reference:
        """Return the same reference for some of the games."""
        return Reference(self.name, self.random[keep], self.human[keep], self.world_record[keep])


@dataclass(frozen=True)
class Correction:
    """One cell in which a reference differs from the printed tables."""

    reference: str
    game: str
    column: str
    printed: float
    value: float
    source: str


@cache
def corrections() -> tuple[Correction, ...]:
    return tuple(
        Correction(
            row["reference"],
            row["game"],
            row["column"],
            float(row["printed"]),
            float(row["value"]),
            row["source"],
        )
        for row in read_csv("corrections.csv")
    )


def check_reference_name(name: str) -> str:
    if name not in REFERENCES:
        raise UserError(
            f"unknown reference {name!r}.{did_you_mean(name, REFERENCES)} Choose from {', '.join(REFERENCES)}."
        )
    return name


def corrected(reference: str, column: str, printed: Array) -> Array:
    """Return a printed column over the games with the corrections of one reference."""
    values = printed.copy()
    for correction in corrections():
        if correction.reference == reference and correction.column == column:
            values[GAMES.index(correction.game)] = correction.value
    values.setflags(write=False)
    return values


@cache
def load_reference(name: str = "paper") -> Reference:
    """Return the reference table `paper`, `printed` or `standard`."""
    check_reference_name(name)
    rows = read_csv("baselines.csv")
    columns = {column: corrected(name, column, np.array([float(row[column]) for row in rows])) for column in _COLUMNS}
    return Reference(name, columns["random"], columns["human"], columns["world_record"])
