"""The report: who is compared on which games, and what the reader is told."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from gdi.errors import UserError
from gdi.scores import (
    GAMES,
    Agent,
    Bootstrap,
    choose_agents,
    confidence_interval,
    improvement,
    intervals,
    judge,
    load_reference,
    published_agents,
    render,
    report_tables,
)
from gdi.scores.improvement import improvements
from gdi.scores.intervals import Statistic
from gdi.scores.reference import Array
from gdi.scores.tables import Column, Estimate, Table, frames_text, parse_frames


def test_gdi_h3_judged_as_a_stranger_gets_its_published_numbers() -> None:
    """The headline numbers, under the three references."""
    scores = published_agents()["gdi_h3"].scores
    means = {}
    for reference in ("paper", "printed", "standard"):
        report = judge([Agent("stranger", scores, 2e8)], choose_agents("all"), reference)
        values = report.mine[0].values
        means[reference] = 100 * values["mean_hns"]
        assert values["hwrb"] == 22
    assert means["paper"] == pytest.approx(9620.93, abs=0.005)
    assert means["standard"] == pytest.approx(10722.07, abs=0.005)
    assert means["printed"] == pytest.approx(9620.28, abs=0.005)
    others = {s.agent.name: s for s in report.others}
    assert others["GDI-I3"].values["hwrb"] == 17
    assert others["GDI-H3"].efficiency("mean_hns") == pytest.approx(107.2207 / 2e8, rel=1e-6)


def test_others_are_cut_to_your_games() -> None:
    mine = Agent.from_dict("mine", {"pong": 10.0, "defender": 5000.0, "surround": 1.0})
    report = judge([mine], choose_agents("agent57,go_explore"))
    by_name = {s.agent.name: s for s in report.others}
    assert by_name["Agent57"].games == 3
    assert by_name["Go-Explore"].games == 1  # it reports neither defender nor surround
    pong = by_name["Go-Explore"].values["mean_hns"]
    assert pong == pytest.approx((21 - -20.7) / (14.6 - -20.7))
    assert any("Fewer games than the 3 compared: Go-Explore (1)" in note for note in report.notes)
    assert any("mine has 3 of the 57 games; its aggregates leave out alien, amidar" in note for note in report.notes)
    assert any("and 46 more" in note for note in report.notes)


def test_common_puts_everybody_on_the_same_games() -> None:
    mine = Agent.from_dict("mine", {"pong": 10.0, "defender": 5000.0, "surround": 1.0})
    report = judge([mine], choose_agents("agent57,go_explore"), common=True)
    assert {s.games for s in (*report.mine, *report.others)} == {1}
    assert report.mine[0].values["mean_hns"] == pytest.approx((10 - -20.7) / (14.6 - -20.7))
    strangers = [Agent.from_dict("a", {"pong": 1.0}), Agent.from_dict("b", {"alien": 1.0})]
    with pytest.raises(UserError, match="--common leaves no game"):
        judge(strangers, (), common=True)


def test_an_agent_without_any_of_your_games_is_left_out() -> None:
    report = judge([Agent.from_dict("mine", {"surround": 1.0})], choose_agents("simple,agent57"))
    assert [s.agent.name for s in report.others] == ["Agent57"]
    assert "SimPLe is left out: it reports none of these games." in report.notes


def test_dominant_games_are_pointed_out() -> None:
    report = judge([published_agents()["gdi_h3"]])
    (note,) = [note for note in report.notes if "make up" in note]
    # jamesbond 226716.95 and krull 55544.92 of a sum of 57 * 9620.93
    assert "2 of 57 games make up 51% of its mean HNS (jamesbond 41%, krull 10%)" in note
    rest = (57 * 9620.928 - 226716.947 - 55544.918) / 55
    assert f"Without them the mean would be {rest:.1f}%." in note
    reference = load_reference()
    even = Agent("even", (3 * reference.human - 2 * reference.random)[None])  # an HNS of 300 % in every game
    assert not any("make up" in note for note in judge([even]).notes)
    assert not any("makes up" in note for note in judge([Agent.from_dict("one", {"pong": 20.0})]).notes)
    five = Agent.from_dict("five", {"jamesbond": 1e6, "pong": 1.0, "alien": 1.0, "hero": 1.0, "boxing": 1.0})
    assert any("five: One game makes up 100% of its mean HNS (jamesbond 100%)" in note for note in judge([five]).notes)


def test_probability_of_improvement_is_reported_both_ways() -> None:
    a = Agent.from_dict("a", {"pong": [1.0, 2.0], "alien": 10.0})
    b = Agent.from_dict("b", {"pong": 1.5, "alien": 10.0, "amidar": 3.0})
    report = judge([a, b], bootstrap=Bootstrap(100))
    found = {(i.agent, i.other): i for i in report.improvements}
    assert found["a", "b"].value == pytest.approx((0.5 + 0.5) / 2)
    assert found["a", "b"].games == 2
    assert found["b", "a"].value == pytest.approx(0.5)
    assert found["a", "b"].interval is not None


def test_pairs_with_runs_in_the_same_places_share_their_replicates(
    five_seeds: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws: list[tuple[Array, ...]] = []

    def spy(statistic: Statistic, *matrices: Array, bootstrap: Bootstrap) -> tuple[Array, Array]:
        draws.append(matrices)
        return confidence_interval(statistic, *matrices, bootstrap=bootstrap)

    monkeypatch.setattr(improvement, "confidence_interval", spy)
    twins = [replace(five_seeds, name=name, scores=five_seeds.scores * k) for name, k in (("a", 1.0), ("b", 1.1))]
    fewer = replace(five_seeds, name="c", scores=five_seeds.scores[:3])
    others = choose_agents("agent57,muzero,r2d2,go_explore,simple")
    together = improvements([*twins, fewer], others, Bootstrap(40))
    # 5 and 3 runs against one run of 57, 55 and 36 games: 6. 5 against 5 runs, 5 against 3, and 3 against 5: 3.
    assert len(together) == 3 * (2 + 5)
    assert len(draws) == 6 + 3
    alone = {
        (a.name, b.name): improvements([a], [b], Bootstrap(40)) for a in (*twins, fewer) for b in (*twins, *others)
    }
    for found in together:
        if (found.agent, found.other) in alone:
            assert found == alone[found.agent, found.other][0]


def test_seeds_are_told_apart_from_single_runs(five_seeds: Agent) -> None:
    single = judge([published_agents()["gdi_h3"]])
    assert any("one run per game: nothing is known about its variation" in note for note in single.notes)
    ragged = Agent.from_dict("ragged", {"pong": [1.0, 2.0], "alien": 3.0})
    assert any("1 to 2 runs per game" in note for note in judge([ragged]).notes)
    assert not any("run per game" in note for note in judge([five_seeds]).notes)


def test_fewer_replicates_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MOST_SCORES", 3)
    monkeypatch.setattr(intervals, "FEWEST_REPLICATES", 10)
    many = Agent.from_dict("many", {"pong": [1.0, 2.0, 3.0], "alien": [5.0, 6.0, 7.0]})
    few = Agent.from_dict("few", {"pong": [1.0, 2.0, 3.0]})
    notes = [note for note in judge([many, few], bootstrap=Bootstrap(100)).notes if "replicates" in note]
    assert notes == ["many has 6 scores; its intervals use 25 bootstrap replicates instead of 100."]
    assert not any("replicates" in note for note in judge([many]).notes)


def test_an_agent_named_like_a_published_one_is_told_apart() -> None:
    mine = Agent("GDI-H3", published_agents()["gdi_h3"].scores - 1.0)
    report = judge([mine], choose_agents("gdi_h3,agent57"))
    assert [s.agent.name for s in report.mine] == ["GDI-H3 (yours)"]
    assert {i.other: i.value for i in report.improvements}["GDI-H3"] == 0


def test_nobody_and_nothing_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="no agent to judge"):
        judge([])
    with pytest.raises(UserError, match="empty has no score"):
        judge([Agent.from_dict("empty", {})])


# ----------------------------------------------------------------------------------------------------------- formats


@pytest.fixture
def tables(five_seeds: Agent) -> list[Table]:
    return report_tables(judge([five_seeds], choose_agents("agent57,simple"), bootstrap=Bootstrap(50)))


def test_the_per_game_table_has_the_paper_numbers() -> None:
    report = judge([Agent("me", published_agents()["gdi_h3"].scores)], choose_agents("all"))
    games = report_tables(report)[0]
    record = {r["game"]: r for r in games.records()}
    assert record["alien"]["hns_percent"] == pytest.approx(703.00, abs=0.005)
    assert record["jamesbond"]["saber_percent"] == 200
    assert record["asterix"]["breakthrough"] is False  # 999999 is not 1000000
    assert record["breakout"]["breakthrough"] is True  # 864 is the record
    assert sum(r["breakthrough"] is True for r in record.values()) == 22
    # alien: Go-Explore 959312 is best, and six agents score more than 48735
    assert (record["alien"]["best_other"], record["alien"]["best_other_score"]) == ("Go-Explore", 959312)
    better = sum(agent.scores[0, 0] > 48735 for agent in published_agents().values())
    assert record["alien"]["rank"] == 1 + better == 7


def test_the_standing_is_by_iqm_and_marks_your_agent() -> None:
    report = judge([Agent("me", published_agents()["gdi_h3"].scores)], choose_agents("rainbow,muzero,simple"))
    standing = next(table for table in report_tables(report) if table.name == "standing")
    assert [row[0] for row in standing.rows] == ["MuZero", "me", "Rainbow", "SimPLe"]
    assert standing.marked == {1}
    record = {r["agent"]: r for r in standing.records()}
    assert record["MuZero"]["game_time_years"] == pytest.approx(2e10 / (100_000 * 2 * 24 * 365))
    assert record["me"]["frames"] is None
    assert record["me"]["learning_efficiency_of_mean_hns"] is None


def test_csv_of_one_table_and_of_many(tables: list[Table]) -> None:
    standing = next(table for table in tables if table.name == "standing")
    rows = list(csv.DictReader(io.StringIO(render([standing], "csv"))))
    assert {row["agent"] for row in rows} == {"five", "Agent57", "SimPLe"}
    agent57 = next(row for row in rows if row["agent"] == "Agent57")
    assert float(agent57["mean_hns_percent"]) == pytest.approx(4763.69, abs=0.005)
    low, high = (float(agent57[f"probability_of_improvement_{end}"]) for end in ("low", "high"))
    assert low <= float(agent57["probability_of_improvement"]) <= high
    tidy = list(csv.DictReader(io.StringIO(render(tables, "csv"))))
    assert set(tidy[0]) == {"table", "row", "column", "value"}
    (cell,) = [r for r in tidy if r["table"] == "standing" and r["row"] == "SimPLe" and r["column"] == "games"]
    assert cell["value"] == "36"


def test_json_is_strict_and_complete(tables: list[Table]) -> None:
    content = json.loads(render(tables, "json"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert set(content) == {"games_five", "aggregates_five", "standing", "notes"}
    assert len(content["games_five"]) == 57
    assert content["games_five"][0]["runs"] == 5
    assert any("make up" in note for note in content["notes"])


def test_markdown_and_latex_have_a_row_per_row(tables: list[Table]) -> None:
    markdown = render(tables, "markdown")
    assert markdown.count("\n| ") == sum(len(table.rows) + 1 for table in tables)
    # One line per row: a heading of two lines would end the table.
    assert all(line.startswith(("|", "## ")) or "|" not in line for line in markdown.splitlines())
    latex = render(tables, "latex")
    assert all(r" & " not in line or line.endswith(r" \\") for line in latex.splitlines())
    assert latex.count(r" \\") == sum(len(table.rows) + 1 for table in tables)
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == len(tables)
    assert "%" not in latex.replace(r"\%", "").split("\\end{table}")[0]  # an unescaped % would hide the line's rest


def test_html_is_well_formed_and_escapes_names() -> None:
    class Checker(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "link"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    evil = Agent.from_dict("<script>alert(1)</script>", {"pong": 1.0})
    page = render(report_tables(judge([evil], choose_agents("all"))), "html")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_terminal_shows_every_number_whole(tables: list[Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = render(tables, "table")
    assert "…" not in text
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row, strict=True):
                assert column.text(cell) in text


def test_square_brackets_are_text_not_markup() -> None:
    table = Table("t", "scores [v2]", (Column("agent", "agent"),), (("mine [red]",),))
    text = render([table], "table")
    assert "scores [v2]" in text
    assert "mine [red]" in text


def test_estimates_and_absences_in_records() -> None:
    table = Table(
        "t", "t", (Column("a", "a"), Column("x", "x", ".1f")), (("p", Estimate(1, 0, 2)), ("q", float("nan")))
    )
    assert table.records() == [
        {"a": "p", "x": 1, "x_low": 0, "x_high": 2},
        {"a": "q", "x": None, "x_low": None, "x_high": None},
    ]
    assert table.columns[1].text(Estimate(1, 0, 2)) == "1.0 [0.0, 2.0]"
    assert table.columns[1].text(float("nan")) == "N/A"


def test_frames() -> None:
    assert [frames_text(x) for x in (2e8, 1e10, 3.5e10, 1e6, 400_000, 12)] == ["200M", "10B", "35B", "1M", "400k", "12"]
    assert [parse_frames(x) for x in ("200e6", "200M", "2E+8", "10b", "400k")] == [2e8, 2e8, 2e8, 1e10, 4e5]
    for bad in ("", "abc", "-5", "0", "1e", "nan", "5T", "."):
        with pytest.raises(UserError, match="--frames"):
            parse_frames(bad)


def test_every_game_name_is_in_the_report() -> None:
    report = judge([Agent("me", published_agents()["gdi_h3"].scores)])
    assert [row[0] for row in report_tables(report)[0].rows] == [game.replace("_", " ") for game in GAMES]
