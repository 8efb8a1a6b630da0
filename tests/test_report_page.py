"""The report page in a real Chromium: no error, no request, every menu draws, and anyone can read it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdi
from browsers import open_pages
from gdi.cli.main import main
from gdi.config import config_to_json
from gdi.report.data import PLOTLY, read_text
from gdi.report.page import live_page
from gdi.report.runs import read_run
from gdi.report.sections.head import reproducing_line
from helpers import tiny_config
from run_folders import hand_config

EVIL = "</script><script>alert(1)</script><b>x</b>&amp;"
ROOT = Path(__file__).parents[1]
MEGABYTE = 1e6


@pytest.fixture(scope="session")
def real_runs(whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return tiny real runs: with E, with a schedule, and without E."""
    root = tmp_path_factory.mktemp("report-runs")
    schedule = gdi.make_config("dqn", "CartPole-v1", steps=3000, seed=3)
    schedule = replace(
        schedule,
        run=replace(schedule.run, log_every_steps=200, checkpoint_every_steps=600, threads=1, device="cpu"),
        evaluation=replace(schedule.evaluation, every_steps=600, episodes=2),
    )
    return {
        "gdi-i3": whole_run,
        "fixed": gdi.train(tiny_config(preset="fixed", steps=1000), root / "fixed").run_dir,
        "dqn": gdi.train(schedule, root / "dqn").run_dir,
    }


def write_report(folders: list[Path], out: Path, *options: str) -> Path:
    assert main(["report", *map(str, folders), "-o", str(out), *options]) == 0
    return out


def fake_run(folder: Path, preset: str, env: str, seed: int, lines: list[dict[str, Any]]) -> Path:
    """Write a run folder of 40 log lines with beliefs about 50 blocks per axis, 4 evaluations and 400 episodes."""
    config = replace(hand_config(preset=preset), seed=seed, steps=40_000)
    config = replace(config, env=replace(config.env, id=env))
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.json").write_text(config_to_json(config))
    rng = np.random.default_rng(seed)
    level = {"gdi-i3": 5.0, "gdi-h3": 4.0}.get(preset, 1.0)
    with (folder / "metrics.jsonl").open("w") as file:
        for line in lines:
            file.write(json.dumps({**line, "episode/return": level + float(rng.normal())}) + "\n")
            if line["steps"] % 10_000 == 0:
                mean = level * line["steps"] / 10_000 + float(rng.normal())
                numbers = {"mean": mean, "median": mean, "min": mean - 1, "max": mean + 1, "episodes": 8}
                counters = {name: line[name] for name in ("steps", "frames", "updates")}
                event = {"kind": "evaluation", **counters, **numbers, "clock": {"seconds": line["steps"] / 1000}}
                file.write(json.dumps(event) + "\n")
    rows = (
        f"{100 * i},0,{rng.uniform(0, 50):.4g},{rng.uniform(0, 50):.4g},{rng.random():.4g},{rng.normal():.4g},9,0"
        for i in range(400)
    )
    header = "steps,env,inverse_tau_1,inverse_tau_2,epsilon,episode_return,length_steps,truncated"
    (folder / "episodes.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def belief_lines() -> list[dict[str, Any]]:
    """Return 40 log lines with 20 more metrics and a random belief."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(1, 41):
        line: dict[str, Any] = {
            "kind": "train",
            "steps": 1000 * i,
            "frames": 4000 * i,
            "updates": 10 * i,
            "episodes": i,
        }
        for axis, blocks in (("inverse_tau_1", 50), ("inverse_tau_2", 50), ("epsilon", 10)):
            p = rng.dirichlet(np.ones(blocks)).round(5)
            value = rng.normal(size=blocks).round(4)
            line |= {
                f"controller/{axis}/block_value": value.tolist(),
                f"controller/{axis}/block_count": rng.uniform(0, 99, blocks).round(1).tolist(),
                f"controller/{axis}/block_probability": p.tolist(),
                f"controller/{axis}/best_block": float(value.argmax()),
                f"controller/{axis}/top_block_probability": float(p.max()),
            }
        line |= {f"loss/part_{k}": float(rng.random()) for k in range(20)} | {"policy/entropy": float(rng.random())}
        lines.append({**line, "clock": {"seconds": float(i), "steps_per_second": 1000.0, "shares": {}}})
    return lines


def clean(found: dict[str, Any]) -> None:
    """Assert what holds for every page: ready, quiet, complete and accessible."""
    assert found["errors"] == []
    assert found["requests"] == []
    assert found["ready"] is not None
    assert found["axe"] == []
    drawn = [look for look in found["views"] if "traces" in look and not look["empty"]]
    assert drawn
    assert all(look["traces"] > 0 and look["marks"] > 0 for look in drawn), [x for x in drawn if not x["marks"]]
    tables = [look for look in found["views"] if look["what"] == "numbers" and not look["empty"]]
    assert all(look["rows"] > 0 for look in tables), tables


@pytest.mark.long
def test_pages_of_real_runs(real_runs: dict[str, Path], tmp_path: Path) -> None:
    pages = [write_report([folder], tmp_path / f"{name}.html") for name, folder in real_runs.items()]
    both = [{"url": page.as_uri(), "scheme": scheme} for page in pages for scheme in ("light", "dark")]
    found = open_pages(both[:3] + both[4:])  # what has no E looks in the dark as with E
    for one in found:
        clean(one)
    assert all(page.stat().st_size <= 2 * MEGABYTE for page in pages)
    light, dark = found[:2]
    assert light["background"] == light["plotBackground"] == "rgb(255, 255, 255)"
    assert dark["background"] == dark["plotBackground"] == "rgb(21, 23, 26)"  # --page of the dark style
    assert light["heading"] == light["title"] == "gdi-i3 on MinAtar/Breakout-v0"
    for heading in (
        "The run",
        "Learning curves",
        "What E did",
        "Which λ paid",
        "How sure E is",
        "Health",
        "Evaluations",
    ):
        assert heading in light["text"]
    # The tabs and the arrow key work: each tab says that it is selected once it was chosen.
    tabs = [look["what"] for look in light["views"] if look["figure"] == "control"]
    assert {"probability true", "value true", "episodes true", "arrow true"} <= set(tabs)
    assert "This run has no E: λ stayed the same." in found[2]["text"]
    assert "a schedule moved λ" in found[3]["text"]


def test_names_are_shown_as_text(real_runs: dict[str, Path], tmp_path: Path) -> None:
    """A hostile name of a run folder, preset and environment appears letter by letter, and runs nothing."""
    folder = shutil.copytree(real_runs["gdi-i3"], tmp_path / EVIL.replace("/", "∕"))
    tree = json.loads((folder / "config.json").read_text())
    tree["preset"], tree["env"]["id"] = EVIL, EVIL
    (folder / "config.json").write_text(json.dumps(tree))
    other = tmp_path / "other"
    shutil.copytree(real_runs["fixed"], other)
    (found,) = open_pages([{"url": write_report([folder, other], tmp_path / "page.html").as_uri()}])
    clean(found)
    assert EVIL in found["text"]
    assert any(EVIL in label for label in found["labels"])  # a legend that Plotly wrote
    assert found["markup"] == 0


@pytest.mark.long
def test_165_runs(tmp_path: Path) -> None:
    """Real folders with beliefs and episodes: 11 agents in 5 environments, 3 seeds each."""
    lines = belief_lines()
    presets = ["gdi-i3", "gdi-h3", "fixed", "random", "boltzmann", "epsilon-greedy"]
    envs = [f"MinAtar/Game{i}-v0" for i in range(5)]
    for agent in range(11):
        preset = presets[agent % len(presets)]
        for env in envs:
            for seed in range(3):
                folder = fake_run(tmp_path / "runs" / f"{agent}-{env[8:]}-{seed}", preset, env, seed, lines)
                if agent >= len(presets):  # the same preset with another setting
                    tree = json.loads((folder / "config.json").read_text())
                    tree["run"]["log_every_steps"] = 123
                    (folder / "config.json").write_text(json.dumps(tree))
    page = write_report([tmp_path / "runs"], tmp_path / "many.html", "--baseline", "epsilon-greedy")
    assert page.stat().st_size <= 6 * MEGABYTE
    (found,) = open_pages([{"url": page.as_uri(), "scheme": "light"}])
    clean(found)
    assert found["heading"] == "11 agents on 5 environments"
    assert "gdi-i3 (log_every_steps 123)" in found["text"]
    for heading in (
        "Performance profiles",
        "Probability of improvement",
        "score / epsilon-greedy",
        "Differences of the settings",
    ):
        assert heading in found["text"]


def test_the_probe_sees_what_is_wrong(tmp_path: Path) -> None:
    """The negative control of all tests above: an error, a request, a missing label and an empty menu are found."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<!doctype html><html><head><title>bad</title></head><body data-ready="yes"><h1>bad</h1><img src="none.png">'
        "<main><b>markup</b></main><script>undefinedFunction()</script></body></html>"
    )
    (found,) = open_pages([{"url": bad.as_uri()}])
    assert any("undefinedFunction" in error for error in found["errors"])
    assert [Path(request).name for request in found["requests"]] == ["none.png"]
    assert {"image-alt", "html-has-lang"} <= {violation["id"] for violation in found["axe"]}
    assert found["markup"] == 1


def test_the_page_forbids_itself_requests_and_foreign_scripts(real_runs: dict[str, Path], tmp_path: Path) -> None:
    page = write_report([real_runs["fixed"]], tmp_path / "page.html")
    text = page.read_text(encoding="utf-8")
    attacked = tmp_path / "attacked.html"
    attack = '<script>document.title = "attacked"</script><img src="https://example.org/x.png" alt="">'
    attacked.write_text(text.replace("</main>", f"</main>{attack}"), encoding="utf-8")
    (found,) = open_pages([{"url": attacked.as_uri(), "walk": False}])
    assert found["title"] != "attacked"
    assert sum("Content Security Policy" in error for error in found["errors"]) == 2
    assert "connect-src 'none'" in text
    assert "connect-src 'self'" in live_page("live")


def test_the_plotly_bundle_is_the_pinned_one() -> None:
    assert PLOTLY in (ROOT / "src/gdi/report/data/README.md").read_text()
    assert read_text(PLOTLY).startswith("/**\n* plotly.js (cartesian - minified) v4.1.1")
    assert "MIT" in read_text("LICENSE-plotly")


@pytest.mark.parametrize("style", ["csv", "png"])
def test_other_formats(real_runs: dict[str, Path], tmp_path: Path, style: str) -> None:
    out = tmp_path / "out"
    assert main(["report", str(real_runs["gdi-i3"]), "-o", str(out), "--format", style]) == 0
    if style == "csv":
        assert out.read_text(encoding="utf-8").startswith("table,row,column,value\n")
        assert "\nevaluations," in out.read_text(encoding="utf-8")
    else:
        assert {"curves.png", "control.png", "paid.png", "sureness.png", "metrics.png"} <= {
            p.name for p in out.iterdir()
        }


def test_the_line_that_repeats_a_run(real_runs: dict[str, Path]) -> None:
    """The options in the line give the very config of the run."""
    from gdi.cli.train import parse

    for folder in real_runs.values():
        words = reproducing_line(read_run(folder)).split()
        assert words[:2] == ["gdi", "train"]
        assert config_to_json(parse(words[2:], "gdi train").config) == (folder / "config.json").read_text()
