"""Score files and score matrices for the tests of `gdi.scores`."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from gdi.scores import GAMES, Agent, Reference, published_agents


@pytest.fixture
def tiny_reference() -> Reference:
    """57 games with random 0, human 10, record 100: a score s has HNS s / 10 and HWRNS s / 100."""
    ones = np.ones(57)
    return Reference("tiny", 0 * ones, 10 * ones, 100 * ones)


@pytest.fixture
def five_seeds() -> Agent:
    """GDI-H3's scores with 10 % noise: five seeds on all 57 games."""
    noise = np.random.default_rng(7).normal(1.0, 0.1, (5, 57))
    return Agent("five", published_agents()["gdi_h3"].scores * noise, 2e8)


@pytest.fixture
def one_file(tmp_path: Path) -> Path:
    """All 57 games, one score each: GDI-H3's."""
    path = tmp_path / "one.csv"
    scores = published_agents()["gdi_h3"].scores[0]
    _write(path, [("game", "score"), *zip(GAMES, scores, strict=True)])
    return path


@pytest.fixture
def five_file(tmp_path: Path, five_seeds: Agent) -> Path:
    """All 57 games, five seeds."""
    path = tmp_path / "five.csv"
    rows = [(game, *five_seeds.scores[:, i]) for i, game in enumerate(GAMES)]
    _write(path, [("game", *(f"seed_{i}" for i in range(5))), *rows])
    return path


def _write(path: Path, rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
