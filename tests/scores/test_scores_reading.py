"""Every accepted shape of input gives the same scores, and every mistake is one line that names its place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gdi.errors import UserError
from gdi.scores import GAMES, Agent, load_agents

PONG, BREAKOUT, MS = (GAMES.index(game) for game in ("pong", "breakout", "ms_pacman"))


def load(tmp_path: Path, text: str, name: str = "mine.csv") -> tuple[Agent, ...]:
    path = tmp_path / name
    path.write_text(text)
    return load_agents([str(path)]).agents


def two_seeds(agent: Agent) -> None:
    """Pong 20 and 21, Breakout 400 and 410, nothing else."""
    assert agent.scores[:, PONG].tolist() == [20.0, 21.0]
    assert agent.scores[:, BREAKOUT].tolist() == [400.0, 410.0]
    assert int(agent.reported.sum()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "game,score,seed\nPong,20,0\nPong,21,1\nBreakout,400,0\nBreakout,410,1\n",
        "seed;env_id;mean\n0;ALE/Pong-v5;20\n1;ALE/Pong-v5;21\n0;Breakout;400\n1;Breakout;410\n",
        "game,seed_0,seed_1\nPongNoFrameskip-v4,20,21\nbreakout,400,410\n",
        "game\t0\t1\npong\t20\t21\nbreakout\t400\t410\n",
        "pong,20,21\nbreakout,400,410\n",
        "Pong,Breakout\n20,400\n21,410\n",
        "seed,ALE/Pong-v5,ALE/Breakout-v5\n7,20,400\n8,21,410\n",
        "# my runs\n\ngame,run 1,run 2\npong,20,21\n\nbreakout,400,410\nalien,,N/A\n",
        ",seed_0,seed_1\npong,20,21\nbreakout,400,410\n",
        ",game,score,seed\n0,Pong,20,0\n1,Pong,21,1\n2,Breakout,400,0\n3,Breakout,410,1\n",
        "\ufeffgame,score,seed\nPong,20,0\nPong,21,1\nBreakout,400,0\nBreakout,410,1\n",
    ],
)
def test_all_shapes_of_csv_read_the_same(tmp_path: Path, text: str) -> None:
    (agent,) = load(tmp_path, text)
    assert agent.name == "mine"
    two_seeds(agent)


@pytest.mark.parametrize(
    "content",
    [
        {"Pong": [20, 21], "ALE/Breakout-v5": [400.0, 410.0]},
        {"mine": {"Pong": [20, 21], "Breakout": [400, 410]}},
        [
            {"game": "Pong", "score": 20, "seed": 0},
            {"game": "Pong", "score": 21, "seed": 1},
            {"Env": "Breakout", "Return": 400, "seed": 0},
            {"Env": "Breakout", "Return": 410, "seed": 1},
        ],
        {"Pong": [20, 21], "Breakout": [400, 410], "alien": None, "amidar": "N/A"},
    ],
)
def test_all_shapes_of_json_read_the_same(tmp_path: Path, content: object) -> None:
    (agent,) = load(tmp_path, json.dumps(content), "mine.json")
    assert agent.name == "mine"
    two_seeds(agent)


def test_several_agents_in_one_file(tmp_path: Path) -> None:
    wide = load(tmp_path, "game,ours,theirs\npong,20,21\nalien,100,\n")
    long = load(tmp_path, "game,score,agent\npong,20,ours\npong,21,theirs\nalien,100,ours\n")
    across = load(tmp_path, "agent,pong,alien\nours,20,100\ntheirs,21,N/A\n")
    nested = load(tmp_path, '{"ours": {"pong": 20, "alien": 100}, "theirs": {"pong": 21}}', "a.json")
    for agents in (wide, long, across, nested):
        assert [agent.name for agent in agents] == ["ours", "theirs"]
        assert [agent.scores[0, PONG] for agent in agents] == [20, 21]
        assert [int(agent.reported.sum()) for agent in agents] == [2, 1]


def test_files_are_agents_and_equal_names_are_pooled_as_seeds(tmp_path: Path) -> None:
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("game,score\npong,20\n")
    b.write_text("game,score\npong,21\n")
    assert [agent.name for agent in load_agents([str(a), str(b)]).agents] == ["a", "b"]
    (pooled,) = load_agents([f"us={a}", f"us={b}"], frames=2e8).agents
    assert pooled.name == "us"
    assert pooled.scores[:, PONG].tolist() == [20.0, 21.0]
    assert pooled.frames == 2e8


def test_a_file_whose_name_has_an_equals_sign(tmp_path: Path) -> None:
    path = tmp_path / "lr=1.csv"
    path.write_text("pong,20\n")
    assert load_agents([str(path)]).agents[0].name == "lr=1"


def test_games_outside_the_57_are_dropped_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("game,score\npong,20\nALE/Pooyan-v5,5\nair raid,3\n")
    loaded = load_agents([str(path)])
    assert int(loaded.agents[0].reported.sum()) == 1
    assert loaded.notes == (f"{path}: dropped pooyan, air_raid: not among the benchmark's 57 games.",)


def test_columns_beside_the_score_are_ignored_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("game,score,std,episodes\npong,20,1.5,100\n")
    loaded = load_agents([str(path)])
    assert [agent.name for agent in loaded.agents] == ["mine"]
    assert loaded.agents[0].scores[0, PONG] == 20
    assert loaded.notes == (f"{path}: only the score column is read. Ignored: std, episodes.",)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("game,score\npong,20\nms_pakman,5\n", r"row 3, column 'game': unknown .*'ms_pakman'.*mean 'ms_pacman'"),
        ("game,score\npong,20\nPong,21\n", r"row 3, column 'score': pong is given twice, first at row 2.*add a 'seed'"),
        ("game,score,seed\npong,20,4\nPong,21,4\n", r"row 3, .*pong is given twice, first at row 2.*both for seed 4"),
        ("game,score,seed\npong,1,4\nhero,2,4\npong,3,5\nPong,4,4\n", r"row 5, .*pong is given twice, first at row 2,"),
        ("game,seed_0,seed_1\npong,20,x\n", r"row 2, column 'seed_1': 'x' is not a number"),
        ("game,score\npong,nan\n", r"row 2, column 'score': 'nan' is NaN or infinite"),
        ("game,score\npong,inf\n", r"row 2, column 'score': 'inf' is NaN or infinite"),
        ('game,score\npong,"1,200"\n', r"row 2, column 'score': '1,200' is not a number \(write it without thousands"),
        ("", r"mine.csv: the file is empty"),
        ("\n \n", r"mine.csv: the file is empty"),
        ("game,score\n", r"mine.csv contains no score"),
        ("game,score\npong,\n", r"mine.csv contains no score"),
        ("game,score\npooyan,4\n", r"none of the benchmark's 57 games"),
        ("a,b,c\n1,2,3\n", r"row 1: no known Atari game and no column 'game' in 'a', 'b', 'c'"),
        ("pongg,20\nalien,3\n", r"row 1, column 1: unknown Atari game 'pongg'. Did you mean 'pong'"),
        ("pong,alienn\n1,2\n", r"row 1, column 2: unknown Atari game 'alienn'. Did you mean 'alien'"),
        ("pong,Pong-v5\n1,2\n", r"row 1, column 2: pong is given twice"),
        ("pong,alien\n1,2,3\n", r"row 2: 3 cells where the first row has 2"),
        ("game,score\npong\n", r"row 2: 1 cells where the first row has 2"),
        ("game\npong\n", r"a column of games, but none of scores"),
        ("game,seed\npong,1\n", r"a column of games, but none of scores"),
        ("game,seed_0,rainbow\npong,1,2\n", r"column 'seed_0' looks like a seed and column 'rainbow' like an agent"),
        ("game,mine,Mine\npong,1,2\n", r"the column 'Mine' appears twice"),
    ],
)  # fmt: skip
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "mine.csv"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"pong": 20,', r"row 1, column \d+: not JSON"),
        ('{"pong": ' + "[" * 100_000, r"nested too deeply"),
        ('{"pong": "abc"}', r"'pong': 'abc' is not a number"),
        ('{"pong": true}', r"'pong': True is not a number"),
        ('{"pong": [1, NaN]}', r"'pong', seed 1: 'nan' is NaN or infinite"),
        ('{"pong": 1, "pong": 2}', r"'pong' is given twice"),
        ('{"pong": 1, "Pong": 2}', r"pong is given twice"),
        ('{"pongg": 1, "alien": 2}', r"unknown Atari game 'pongg'. Did you mean 'pong'"),
        ('{"foo": 1, "bar": 2}', r"no known Atari game in 'foo', 'bar'"),
        ("{}", r"contains no score"),
        ("[]", r"contains no score"),
        ('[{"game": "pong"}]', r"record 1: needs 'game' and 'score', has 'game'"),
        ("[3]", r"record 1: expected an object"),
        ("3", r"expected an object or a list, found int"),
    ],
)
def test_bad_json(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(tmp_path, text, "mine.json")
    assert "\n" not in str(caught.value)


def test_bad_places(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent.csv: no such file or run folder"):
        load_agents([str(tmp_path / "absent.csv")])
    with pytest.raises(UserError, match=r"is a directory, and not a run folder"):
        load_agents([str(tmp_path)])
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(UserError, match=r"picture.csv: not a text file"):
        load_agents([str(tmp_path / "picture.csv")])


# ------------------------------------------------------------------------------------------------------ run folders


def run_folder(path: Path, env: str, *evaluations: float, tail: str = "", protocol: str = "paper") -> str:
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"env": {"id": env}, "steps": 1000}))
    lines = [{"kind": "update", "steps": 5, "mean": 99.0}]
    for i, mean in enumerate(evaluations, 1):
        numbers = {"steps": 1000 * i, "frames": 4000 * i, "mean": mean, "episodes": 3}
        lines.append({"kind": "evaluation", **numbers, "protocol": protocol})
    lines.append({"kind": "update", "steps": 9999, "mean": 77.0})
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return str(path)


def test_run_folders_are_pooled_and_their_last_evaluation_counts(tmp_path: Path) -> None:
    folders = [
        run_folder(tmp_path / "a", "ALE/Pong-v5", -21.0, 3.0),
        run_folder(tmp_path / "b", "ALE/Pong-v5", -20.0, 5.0),
        run_folder(tmp_path / "c", "BreakoutNoFrameskip-v4", 12.0),
    ]
    loaded = load_agents(folders)
    (agent,) = loaded.agents
    assert agent.name == "runs"
    assert agent.scores[:, PONG].tolist() == [3.0, 5.0]
    assert agent.scores[0, BREAKOUT] == 12.0
    assert np.isnan(agent.scores[1, BREAKOUT])
    assert agent.frames == 8000
    assert loaded.notes == (
        "runs: its runs have different numbers of frames. The largest is used.",
        "runs: protocol paper.",
    )
    (named,) = load_agents([f"ours={folders[0]}"], frames=123.0).agents
    assert (named.name, named.frames) == ("ours", 123.0)


def test_scores_of_different_protocols_are_told_apart(tmp_path: Path) -> None:
    folders = [
        run_folder(tmp_path / "a", "ALE/Pong-v5", 3.0),
        run_folder(tmp_path / "b", "ALE/Breakout-v5", 5.0, protocol="saber"),
    ]
    with pytest.raises(UserError, match=r"protocols paper, saber, whose scores are not comparable.*--mix-protocols"):
        load_agents(folders)
    loaded = load_agents(folders, mix_protocols=True)
    assert loaded.notes == ("runs: protocol paper, saber: scores of different protocols are not comparable.",)
    assert load_agents([f"ours={folders[1]}"]).notes == ("ours: protocol saber.",)


def test_a_run_in_progress_may_have_half_a_line(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a", "ALE/Pong-v5", 1.0, tail='{"kind": "evalua')
    assert load_agents([folder]).agents[0].scores[0, PONG] == 1.0


def test_bad_run_folders(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"its environment 'CartPole-v1' is not one of the 57 Atari games"):
        load_agents([run_folder(tmp_path / "cart", "CartPole-v1", 500.0)])
    with pytest.raises(UserError, match=r"'MinAtar/Breakout-v1' is not one of the 57"):
        load_agents([run_folder(tmp_path / "min", "MinAtar/Breakout-v1", 20.0)])
    with pytest.raises(UserError, match=r"no evaluation in metrics.jsonl yet"):
        load_agents([run_folder(tmp_path / "young", "ALE/Pong-v5")])
    with pytest.raises(UserError, match=r"the mean of its last evaluation is nan"):
        load_agents([run_folder(tmp_path / "nan", "ALE/Pong-v5", float("nan"))])
    broken = Path(run_folder(tmp_path / "broken", "ALE/Pong-v5", 1.0))
    (broken / "metrics.jsonl").write_text("{}\nnonsense\n{}\n")
    with pytest.raises(UserError, match=r"metrics.jsonl: row 2: not JSON"):
        load_agents([str(broken)])
    (broken / "config.json").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"broken cannot be read: .*utf-8"):
        load_agents([str(broken)])
    (broken / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"config.json: does not say which environment"):
        load_agents([str(broken)])
