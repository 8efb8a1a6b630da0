"""``gdi report`` of the committed MinAtar records has the numbers of docs/results/minatar.md, digit by digit."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdi.report.collect import collect_runs
from gdi.report.material import Material, make_material, scored_runs
from gdi.report.sections.games import aggregate_table, normalized, score_table
from gdi.report.sections.improvement import improvement_table
from gdi.scores import runs as scored
from gdi.scores.tables import Table

RESULTS = Path(__file__).parents[1] / "docs" / "results"
GAMES = ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"]
AGENTS = {
    "GDI-I3": "gdi-i3",
    "GDI-I3, Q-loss weight 10": "gdi-i3-q10",
    "GDI-H3": "gdi-h3",
    "Boltzmann Selection": "boltzmann",
    "ε-greedy Selection": "epsilon-greedy",
    "DQN (SB3)": "dqn",
    "PPO (SB3)": "ppo",
    "Random Selection": "random",
    "Fixed Selection, reward factor 1": "fixed-unscaled",
    "Fixed Selection": "fixed",
}


@pytest.fixture(scope="module")
def material() -> Material:
    return make_material(collect_runs([RESULTS / "minatar"]), baseline="dqn")


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of minatar.md."""
    text = (RESULTS / page).read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[1:] if "---" not in line]


def texts(table: Table) -> dict[str, list[str]]:
    """Return the printed cells of a table by its first one."""
    return {
        row[0]: [column.text(cell) for column, cell in zip(table.columns[1:], row[1:], strict=True)]
        for row in table.rows
    }


def test_scores_and_iqm(material: Material) -> None:
    runs = scored_runs(material)
    assert len(runs) == 190
    raw = {agent: scored.score_matrix(runs, agent, GAMES) for agent in material.agents}
    scores = texts(score_table(raw, GAMES))
    aggregates = texts(aggregate_table(normalized(material, raw, runs, GAMES)["score / dqn"], "score / dqn"))
    printed = rows_of("minatar.md", "Scores")
    assert len(printed) == 10
    for label, _, iqm, *games in printed:
        assert scores[AGENTS[label]] == games
        assert aggregates[AGENTS[label]][0] == iqm


def test_probabilities_of_improvement(material: Material) -> None:
    found = texts(improvement_table(scored_runs(material), material.agents, GAMES))
    assert len(found) == 10 * 9 / 2
    names = {label.split(" (")[0]: name for label, name in AGENTS.items()}
    for pair, probability, _, verdict in rows_of("minatar.md", "The paper's claims"):
        first, second = (names[label] for label in pair.split(" over "))
        cells = found[f"{first} over {second}"]
        assert cells[0] == probability
        assert cells[-1] == ("better" if verdict.startswith("held") else "undecided")


def test_every_pair_of_the_full_tables(material: Material) -> None:
    found = texts(improvement_table(scored_runs(material), material.agents, GAMES))
    names = {**{label.replace("Fixed", "Fix"): name for label, name in AGENTS.items()}}
    rows = rows_of("minatar/tables.md", "Did the claims hold?")
    assert len(rows) == 17
    for pair, _, probability, games, _ in rows:
        first, second = (names[label] for label in pair.split(" over "))
        assert found[f"{first} over {second}"][:2] == [probability, games]
