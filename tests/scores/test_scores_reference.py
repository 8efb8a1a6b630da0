"""The data: 57 complete games under three references, 13 published agents, and one name per game."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdi.errors import UserError
from gdi.scores import GAMES, REFERENCES, canonical_game, choose_agents, find_game, load_reference, published_agents
from gdi.scores.data import read_csv
from gdi.scores.games import NON_BENCHMARK_GAMES
from gdi.scores.reference import corrections


@pytest.mark.parametrize("name", REFERENCES)
def test_each_reference_is_complete_and_ordered(name: str) -> None:
    reference = load_reference(name)
    for column in (reference.random, reference.human, reference.world_record):
        assert column.shape == (57,)
        assert np.isfinite(column).all()
    assert (reference.human > reference.random).all()
    assert (reference.world_record > reference.random).all()
    # A record is a record: the average human is below it in every game.
    assert (reference.world_record > reference.human).all()


def test_the_games_are_57_sorted_and_distinct() -> None:
    assert len(set(GAMES)) == 57
    assert list(GAMES) == sorted(GAMES)


def test_references_differ_exactly_where_the_corrections_say() -> None:
    printed = load_reference("printed")
    for name in ("paper", "standard"):
        other = load_reference(name)
        differing = {
            (game, column)
            for column in ("random", "human", "world_record")
            for game, a, b in zip(GAMES, getattr(printed, column), getattr(other, column), strict=True)
            if a != b
        }
        said = {(c.game, c.column) for c in corrections() if c.reference == name and c.column in ("random", "human")}
        assert differing == said
    assert {(c.game, c.column) for c in corrections() if c.reference == "paper" and c.column == "human"} == {
        ("crazy_climber", "human"),
        ("time_pilot", "human"),
    }


def test_every_correction_starts_from_the_printed_value_and_gives_a_reason() -> None:
    columns = {row["game"]: row for row in read_csv("baselines.csv")}
    scores = {row["game"]: row for row in read_csv("scores.csv")}
    for correction in corrections():
        row = columns[correction.game] if correction.column in columns[correction.game] else scores[correction.game]
        assert float(row[correction.column]) == correction.printed != correction.value
        assert correction.source


def test_every_number_carries_its_source() -> None:
    assert all("table hns_200m, L" in row["source"] for row in read_csv("baselines.csv"))
    assert all(agent.source for agent in published_agents(ablations=True).values())


def test_known_cells() -> None:
    index = GAMES.index
    assert load_reference("printed").human[index("crazy_climber")] == 36829.4
    assert load_reference("paper").human[index("crazy_climber")] == 35829.4
    assert load_reference("standard").random[index("video_pinball")] == 16256.9
    assert load_reference("paper").random[index("video_pinball")] == 0
    assert load_reference("paper").world_record[index("pong")] == 21
    fishing = index("fishing_derby")
    assert published_agents("paper")["gdi_i3"].scores[0, fishing] == 59.44
    assert published_agents("printed")["gdi_i3"].scores[0, fishing] == 59


def test_thirteen_published_agents_and_their_missing_games() -> None:
    agents = published_agents()
    assert len(agents) == 13
    missing = {name: 57 - int(agent.reported.sum()) for name, agent in agents.items() if not agent.reported.all()}
    assert missing == {"dreamer_v2": 2, "simple": 57 - 36, "go_explore": 2}
    lacking = ~agents["go_explore"].reported
    assert [game for game, gone in zip(GAMES, lacking, strict=True) if gone] == ["defender", "surround"]
    assert len(published_agents(ablations=True)) == 15


def test_unknown_reference_is_a_user_error() -> None:
    with pytest.raises(UserError, match="Did you mean 'standard'"):
        load_reference("standart")


# ------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("spelling", "game"),
    [
        ("MsPacman", "ms_pacman"),
        ("ms pacman", "ms_pacman"),
        ("Ms. Pac-Man", "ms_pacman"),
        ("ALE/MsPacman-v5", "ms_pacman"),
        ("MsPacmanNoFrameskip-v4", "ms_pacman"),
        ("MsPacmanDeterministic-v0", "ms_pacman"),
        ("MsPacman-ram-v0", "ms_pacman"),
        ("MsPacman-ramNoFrameskip-v4", "ms_pacman"),
        ("Q*bert", "qbert"),
        ("H.E.R.O.", "hero"),
        ("Yar's Revenge", "yars_revenge"),
        ("Montezuma's Revenge", "montezuma_revenge"),
        ("UpNDown", "up_n_down"),
        ("James Bond", "jamesbond"),
        ("River Raid", "riverraid"),
        ("StarGunner", "star_gunner"),
        ("  pong ", "pong"),
    ],
)
def test_usual_spellings(spelling: str, game: str) -> None:
    assert canonical_game(spelling) == game


@given(
    st.sampled_from(GAMES),
    st.sampled_from(["{}", "ALE/{}-v5", "{}NoFrameskip-v4", "{}Deterministic-v4", "{}-v0", "{}-ram-v4", "atari/{}"]),
    st.sampled_from(["snake", "Camel", "UPPER", "spaced"]),
)
def test_every_game_in_every_usual_spelling(game: str, pattern: str, case: str) -> None:
    written = {
        "snake": game,
        "Camel": "".join(part.capitalize() for part in game.split("_")),
        "UPPER": game.upper(),
        "spaced": game.replace("_", " "),
    }[case]
    assert canonical_game(pattern.format(written)) == game


def test_another_suite_is_not_atari() -> None:
    # MinAtar's Breakout has other rules and another scale.
    assert find_game("MinAtar/Breakout-v1") is None
    assert find_game("CartPole-v1") is None


def test_unknown_games_name_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown Atari game 'ALE/MsPackman-v5'. Did you mean 'ms_pacman'"):
        canonical_game("ALE/MsPackman-v5")
    with pytest.raises(UserError, match="not one of the benchmark's 57"):
        canonical_game(NON_BENCHMARK_GAMES[1])


def test_choosing_agents() -> None:
    assert [agent.name for agent in choose_agents("Agent57, go-explore,GDI_H3")] == ["Agent57", "Go-Explore", "GDI-H3"]
    assert choose_agents("none") == ()
    assert len(choose_agents("all")) == 13
    assert [agent.name for agent in choose_agents("fix_selection")] == ["Fix Selection"]
    with pytest.raises(UserError, match=r"unknown agent 'agent75'. Did you mean 'agent57'"):
        choose_agents("agent75")
