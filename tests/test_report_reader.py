"""The reader of run folders: damaged logs give a correct page or a clear line, never a wrong number."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gdi.cli.main import main
from gdi.config import config_to_json
from gdi.errors import UserError
from gdi.report.collect import collect_runs
from gdi.report.document import document_json
from gdi.report.episodes import in_order
from gdi.report.groups import agent_labels, group_runs
from gdi.report.health import RULES, findings, kept_gain, table_in_markdown
from gdi.report.material import looks_of, make_material
from gdi.report.report import report
from gdi.report.runs import find_run_folders, read_run
from gdi.report.sections.curves import align, curves
from gdi.runtime.lock import RunLock
from helpers import error_line
from run_folders import append, hand_config, train_line, write_run

DOCS = Path(__file__).parents[1] / "docs"
FORMAT_1 = Path(__file__).parent / "data" / "format1" / "run-minatar"


def evaluation_line(steps: int, mean: float) -> dict[str, object]:
    numbers = {"mean": mean, "median": mean, "min": mean - 1, "max": mean + 1, "episodes": 4}
    counters = {"steps": steps, "frames": steps, "updates": steps // 100}
    return {"kind": "evaluation", **counters, **numbers, "clock": {"seconds": steps / 1000}}


def some_lines(count: int = 12) -> list[dict[str, object]]:
    """Return training lines at 100, 200, ..., and an evaluation after every third one."""
    rng = np.random.default_rng(3)
    lines: list[dict[str, object]] = []
    for i in range(1, count + 1):
        best = {"inverse_tau_1": int(rng.integers(50)), "epsilon": int(rng.integers(10))}
        lines.append(
            train_line(100 * i, best, **{"policy/entropy": float(rng.random()), "loss/v": float(rng.random())})
        )
        if i % 3 == 0:
            lines.append(evaluation_line(100 * i, float(rng.normal())))
    return lines


def test_a_run_reads_as_it_was_written(tmp_path: Path) -> None:
    lines = some_lines()
    run = read_run(write_run(tmp_path / "run", lines))
    assert [*run.train] == [line for line in lines if line["kind"] == "train"]
    assert [*run.evaluations] == [line for line in lines if line["kind"] == "evaluation"]
    assert run.notes == ()
    assert run.settings.preset == "gdi-i3"
    assert run.settings.label_of("inverse_tau_1") == "1/τ1"
    belief = run.belief("epsilon")
    assert belief is not None
    assert belief.best_block.tolist() == [line["controller/epsilon/best_block"] for line in run.train]
    assert run.belief("inverse_tau_2") is None
    # Every train line has an episode of return steps / 100.
    assert run.episodes.episode_return.tolist() == [float(i) for i in range(1, 13)]


def test_the_state_in_words(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", some_lines(), replace(hand_config(), steps=2000))
    assert read_run(folder).state.text == "stopped at 1,200 of 2,000 steps; gdi train --resume continues it"
    with closing(RunLock(folder, "local")):
        assert read_run(folder).state.text == "running, 1,200 of 2,000 steps"
    append(folder, json.dumps(evaluation_line(2000, 1.0)) + "\n")
    assert read_run(folder).state.word == "finished"
    assert read_run(write_run(tmp_path / "new", [])).state.word == "empty"


def test_a_checkpoint_ahead_of_the_log_counts(tmp_path: Path) -> None:
    """A stop saves between two lines of the log, or before the first one."""
    folder = write_run(tmp_path / "run", [], replace(hand_config(), steps=2000))
    saved = folder / "checkpoints"
    for name in ("step-000000000000-update-000000000", "step-000000009000-update-000000090.part", "my-copy"):
        (saved / name).mkdir()
    assert read_run(folder).state.word == "empty"
    (saved / "step-000000001280-update-000000012").mkdir()
    run = read_run(folder)
    assert run.state.text == "stopped at 1,280 of 2,000 steps; gdi train --resume continues it"
    assert run.steps == 1280
    longer = write_run(tmp_path / "longer", some_lines(), replace(hand_config(), steps=2000))
    (longer / "checkpoints" / "step-000000001150-update-000000011").mkdir()
    assert read_run(longer).steps == 1200


def test_a_cut_last_line_and_a_rewound_log(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", some_lines())
    append(folder, json.dumps(train_line(1300))[:-30])
    assert [line["steps"] for line in read_run(folder).train] == list(range(100, 1300, 100))
    assert read_run(folder).notes == ()  # a run that still writes is not damaged
    # A crash after which the run repeats its steps from 500: the repetition counts.
    append(folder, "\n" + json.dumps(train_line(500, **{"policy/entropy": 7.0})) + "\n")
    run = read_run(folder)
    assert [line["steps"] for line in run.train] == [100, 200, 300, 400, 500]
    assert run.train[-1]["policy/entropy"] == 7.0
    assert run.notes == ("1 damaged line of metrics.jsonl left out.",)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": "5"},
        {"steps": -5},
        {"steps": True},
        {"frames": 101},  # not a multiple of the steps
        {"kind": "other"},
        {"clock": None},
        {"controller/epsilon/top_block_probability": 0.9},  # the largest probability is 0.5
        {"controller/epsilon/block_value": [1.0]},
        {"controller/epsilon/block_probability": [0.5] * 10},  # sums to 5
        {"controller/epsilon/block_probability": [None] * 10},
    ],
)
def test_a_line_that_contradicts_itself_is_left_out(tmp_path: Path, change: dict[str, object]) -> None:
    line = train_line(100, {"epsilon": 3})
    assert len(read_run(write_run(tmp_path / "good", [line])).train) == 1
    bad = write_run(tmp_path / "bad", [])
    append(bad, json.dumps({**line, **change}) + "\n")
    run = read_run(bad)
    assert run.train == ()
    assert run.notes[0] == "1 damaged line of metrics.jsonl left out."


def damaged(text: bytes, rng: random.Random) -> bytes:
    """Return a log after an accident: a cut, a hole of zero bytes, junk, mixed, lost or repeated lines."""
    lines = text.splitlines(keepends=True)
    kind = rng.randrange(7)
    if kind == 0:
        return text[: rng.randrange(len(text))]
    if kind == 1:
        begin = rng.randrange(len(text))
        return text[:begin] + bytes(rng.randrange(1, 4000)) + text[begin:]
    if kind == 2:  # a hole
        begin = rng.randrange(len(text))
        end = min(len(text), begin + rng.randrange(1, 4000))
        return text[:begin] + bytes(end - begin) + text[end:]
    if kind == 3:  # junk bytes, none of which is part of a number or a name
        out = bytearray(text)
        for _ in range(rng.randrange(1, 20)):
            out[rng.randrange(len(out))] = rng.choice(b'\x00\xff{}[]"\\')
        return bytes(out)
    if kind == 4:  # two writers, each of whom is cut off by the other
        place, cut = rng.randrange(len(lines)), rng.randrange(1, 40)
        lines.insert(place, lines[rng.randrange(len(lines))][:cut])
        return b"".join(lines)
    if kind == 5:
        rng.shuffle(lines)
        return b"".join(lines)
    return b"".join(rng.choice(lines) for _ in range(len(lines)))


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([1, 2, 2, 3], [0, 1, 2, 3]),
        ([1, 9, 2, 3], [0, 2, 3]),  # one number too large costs one line, not all behind it
        ([5, 6, 1, 7], [0, 1, 3]),
        ([3, 2, 1], [2]),
        ([], []),
    ],
)
def test_the_longest_part_in_order(steps: list[float], kept: list[int]) -> None:
    assert in_order(steps) == kept


def test_300_damaged_logs_never_show_a_wrong_number(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", some_lines())
    files = {name: (folder / name).read_bytes() for name in ("metrics.jsonl", "episodes.csv", "config.json")}
    written = [json.loads(line) for line in files["metrics.jsonl"].splitlines()]
    rows = {tuple(map(float, row.split(b","))) for row in files["episodes.csv"].splitlines()[1:]}
    kept = 0
    for seed in range(300):
        rng = random.Random(seed)
        for name, text in files.items():
            (folder / name).write_bytes(damaged(text, rng) if rng.random() < 0.7 else text)
        run = read_run(folder)
        document_json(report([run]))
        for line in (*run.train, *run.evaluations):
            assert line in written, (seed, [item for item in line.items() if item not in written[0].items()])
        for lines in (run.train, run.evaluations):
            steps = [line["steps"] for line in lines]
            assert steps == sorted(set(steps))
        found = run.episodes
        for i in range(len(found)):
            index = [values[i] for values in found.index.values()]
            assert (found.steps[i], 0, *index, found.episode_return[i], found.length_steps[i], 0) in rows
        kept += len(run.train)
    assert kept > 300 * 12 / 3  # the test would prove nothing if nothing were read


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"format": 99}', '{"format": []}', '{"env": 3}'])
def test_a_damaged_config_is_no_traceback(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", some_lines())
    (folder / "config.json").write_text(text)
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "report.html")


def test_a_class_of_a_stranger_is_not_imported(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", some_lines())
    tree = json.loads(config_to_json(hand_config()))
    tree["controller"] = {"kind": "stranger_module:Bandit", "size": 3}
    tree["index_space"] = {**tree["index_space"], "kind": "stranger_module:Space"}
    (folder / "config.json").write_text(json.dumps(tree))
    (tmp_path / "stranger_module.py").write_text("raise SystemExit('imported')")
    run = read_run(folder)
    assert run.settings.controller == "stranger_module:Bandit"
    assert run.settings.label_of("epsilon") == "epsilon"
    assert run.belief("epsilon") is not None


def test_an_own_controller_is_named_and_no_line_is_promised(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", some_lines())
    assert "This line trains the same run again:" in document_json(report([read_run(folder)]))
    tree = json.loads(config_to_json(hand_config()))
    (folder / "config.json").write_text(json.dumps({**tree, "controller": {"kind": "mine:EliteConfig", "size": 3}}))
    run = read_run(folder)
    assert run.settings.agent == "gdi-i3, controller EliteConfig"
    assert list(agent_labels([run]).values()) == ["gdi-i3, controller EliteConfig"]
    text = document_json(report([run]))
    assert "No command line trains this run again, because its controller is your own class." in text
    assert "This line trains" not in text
    both = {"controller": {"kind": "mine:EliteConfig"}, "learner": {"kind": "mine:Own"}}
    (folder / "config.json").write_text(json.dumps({**tree, **both}))
    assert "because its controller and learner are your own classes." in document_json(report([read_run(folder)]))


def test_a_run_of_the_first_format() -> None:
    run = read_run(FORMAT_1)
    assert (run.settings.preset, run.settings.seed, run.env) == ("gdi-i3", 9, "MinAtar/Breakout-v0")
    assert len(run.episodes) == 54
    assert [axis.num_blocks for axis in run.settings.axes] == [50, 50, 10]
    assert document_json(report([run]))


def test_runs_equal_up_to_the_seed_are_one_group(tmp_path: Path) -> None:
    base = hand_config()
    other = replace(base, run=replace(base.run, log_every_steps=7))
    configs = [base, replace(base, seed=8), other, replace(base, env=replace(base.env, id="CartPole-v1"))]
    runs = [read_run(write_run(tmp_path / str(i), some_lines(), config)) for i, config in enumerate(configs)]
    groups = group_runs(runs)
    assert [(group.env, len(group.runs)) for group in groups] == [
        ("MinAtar/Breakout-v0", 2),
        ("MinAtar/Breakout-v0", 1),
        ("CartPole-v1", 1),
    ]
    first = base.run.log_every_steps
    assert set(agent_labels(runs).values()) == {f"gdi-i3 (log_every_steps {first})", "gdi-i3 (log_every_steps 7)"}


def test_no_two_agents_look_alike() -> None:
    looks = looks_of(["gdi-i3", "gdi-h3", *(f"agent {i}" for i in range(25))])
    assert len(set(looks.values())) == 27
    assert len(set(looks_of([f"agent {i}" for i in range(40)]).values())) == 40


def test_finding_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a" / "one", some_lines())
    write_run(tmp_path / "b", some_lines())
    write_run(tmp_path / "b" / "inside", some_lines())  # part of run b, not a run
    assert find_run_folders(tmp_path) == [tmp_path / "a" / "one", tmp_path / "b"]
    assert len(collect_runs([tmp_path, tmp_path / "b"])) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no run"):
        collect_runs([tmp_path / "empty"])
    assert "is not a folder" in error_line(["report", str(tmp_path / "nothing")], capsys)
    assert "Did you mean 'html'?" in error_line(["report", str(tmp_path / "b"), "--format", "htm"], capsys)
    assert "unknown --baseline" in error_line(["report", str(tmp_path / "b"), "--baseline", "dqn"], capsys)
    assert "cannot be written" in error_line(["report", str(tmp_path / "b"), "-o", "/nowhere/x.html"], capsys)


def test_health_rules() -> None:
    lines = [train_line(100 * i, **{"policy/entropy": 0.5, "learner/skipped": 0.0}) for i in range(1, 13)]
    assert {finding.rule.name: finding.healthy for finding in findings(lines)} == {
        "return": True, "entropy": True, "skipped updates": True,
    }  # fmt: skip
    # The newest quarter, three of twelve lines, decides by its median.
    lines[-1]["policy/entropy"] = 0.0
    assert all(finding.healthy for finding in findings(lines))
    lines[-2]["policy/entropy"] = 0.0
    assert [finding.rule.name for finding in findings(lines) if not finding.healthy] == ["entropy"]
    assert findings(lines[:3]) == []


def test_the_gain_that_is_kept() -> None:
    # Returns 0, 10, 4: the gain is 10, then 4 of it are left.
    lines = [train_line(100 * (i + 1), **{"episode/return": value}) for i, value in enumerate((0.0, 10.0, 4.0))]
    assert kept_gain(lines)[1:].tolist() == [1.0, 0.4]


def test_curves_of_a_group_on_a_human_scale(tmp_path: Path) -> None:
    """Four seeds of Breakout score 1.7, 30.5, 30.5 and 864: random play, twice the human, and the record."""
    for seed, score in enumerate((1.7, 30.5, 30.5, 864.0)):
        config = replace(hand_config(), seed=seed, env=replace(hand_config().env, id="ALE/Breakout-v5"))
        write_run(tmp_path / str(seed), [evaluation_line(500, 1.7), evaluation_line(1000, score)], config)
    section = curves(make_material(collect_runs([tmp_path])))
    assert section is not None
    (figure,) = section.blocks

    def last(scale: str, statistic: str) -> float:
        view = figure.views["ALE/Breakout-v5", "evaluation", scale, "steps", statistic]
        (curve,) = [
            trace for trace in view.traces if str(trace["name" if "name" in trace else "mode"]).startswith("gdi")
        ]
        return curve["y"][-1]

    # HNS = (score - 1.7) / (30.5 - 1.7), so the scores are 0, 1, 1 and 862.3 / 28.8.
    assert last("hns", "mean") == pytest.approx(100 * (0 + 1 + 1 + 862.3 / 28.8) / 4, rel=1e-4)
    assert last("hns", "IQM") == pytest.approx(100)
    assert last("return", "mean") == pytest.approx((1.7 + 30.5 + 30.5 + 864) / 4, rel=1e-4)
    lines = {
        trace["name"]: trace["y"]
        for trace in figure.views["ALE/Breakout-v5", "evaluation", "hns", "steps", "mean"].traces
        if "name" in trace
    }
    assert lines["human: 100"] == [100, 100]
    assert lines["random play: 0"] == [0, 0]


def test_a_point_that_one_seed_has_not_reached_is_left_out(tmp_path: Path) -> None:
    long = write_run(tmp_path / "a", [evaluation_line(1000 * i, float(i)) for i in (1, 2, 3)])
    short = write_run(tmp_path / "b", [evaluation_line(1000 * i + 7, 5.0) for i in (1, 2)])
    found = align([read_run(long), read_run(short)], "evaluation")
    assert found is not None
    assert found.values.tolist() == [[1.0, 2.0], [5.0, 5.0]]
    assert found.x["steps"].tolist() == [1003.5, 2003.5]


def test_the_documentation_has_the_health_rules() -> None:
    assert table_in_markdown() in (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert len({rule.name for rule in RULES}) == len(RULES)
