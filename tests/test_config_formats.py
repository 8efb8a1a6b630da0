"""Configs on disk: format 1 is upgraded, format 2 survives, and what cannot be read is one line."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gdi
from gdi.cli.main import main
from gdi.config import Config, config_from_json, config_to_json
from gdi.errors import UserError
from gdi.presets import PRESETS, SCALES, make_config
from helpers import error_line

DATA = Path(__file__).parent / "data" / "format1"
CONFIGS = sorted(DATA.glob("*-*.json"))


def test_there_is_one_of_every_preset_at_every_scale() -> None:
    """The other systems came after format 1."""
    presets = PRESETS.keys() - {"dqn", "ppo", "impala"}
    assert {path.stem for path in CONFIGS} == {f"{preset}-{scale}" for preset in presets for scale in SCALES}


def as_first_published(config: Config) -> Config:
    """Return a preset's config without what came later: kept states, and the mends of the defaults of two scales."""
    config = replace(config, run=replace(config.run, states_per_stage=0))
    learner = replace(config.learner, q_loss_scale=10.0)
    if config.scale != "classic":
        return replace(config, learner=learner)
    if config.preset != "gdi-h3":
        learner = replace(learner, reward_shapes=("log",), reward_scales=(0.15,))
    network = replace(config.network, normalize=False, hidden_units=64)
    return replace(config, steps=200_000, network=network, learner=learner)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_format_1_upgrades_to_the_config_that_the_preset_makes(path: Path) -> None:
    config = config_from_json(path.read_text())
    assert config == as_first_published(make_config(config.preset, config.env.id, scale=config.scale))
    assert f"{config.preset}-{config.scale}" == path.stem
    assert config_from_json(config_to_json(config)) == config


def changed(**changes: Any) -> str:
    return json.dumps({**json.loads(config_to_json(make_config("gdi-i3", "CartPole-v1"))), **changes})


def with_section(section: str, **changes: Any) -> str:
    data = json.loads(changed())
    return json.dumps({**data, section: {**data[section], **changes}})


def without(section: str, field: str) -> str:
    data = json.loads(changed())
    del data[section][field]
    return json.dumps(data)


DAMAGED = {
    "no JSON": ("{", "cannot be read"),
    "no object": ("[1]", "must be an object"),
    "a later format": (changed(format=3), "format 3, and this version of gdi reads up to 2"),
    "a format of another age": (changed(format=99), "format 99, and this version of gdi reads up to 2"),
    "a format that is none": (changed(format="x"), "format 'x'"),
    "a section that is no object": (changed(data=7), "data. must be an object"),
    "an unknown field": (with_section("data", reply=2), "unknown or missing field data.reply"),
    "a missing field": (without("data", "replay"), "unknown or missing field data.replay"),
    "an unknown kind": (with_section("controller", kind="tile-bandits"), "Did you mean 'tile-bandit'?"),
    "no kind": (without("controller", "kind"), "controller has no kind"),
    "a kind that is no word": (with_section("controller", kind=None), "controller has no kind"),
    "a value of another type": (with_section("data", replay="2"), "--data.replay must be of type int"),
    "a number that is none": (with_section("optimizer", learning_rate=float("nan")), "must be a finite number"),
    "a module of nobody": (with_section("controller", kind="nobody:Config"), "module nobody, which is not part of gdi"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_config_that_cannot_be_read_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = DAMAGED[name]
    folder = tmp_path / "run"
    shutil.copytree(DATA / "run-minatar", folder)
    (folder / "config.json").write_text(text)
    before = contents(folder)
    assert words in error_line(["evaluate", str(folder)], capsys)
    assert words in error_line(["train", "--run-dir", str(folder), "--resume"], capsys)
    assert contents(folder) == before


def contents(folder: Path) -> dict[Path, bytes]:
    """All files but the lock, which a session that has come so far makes."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


@pytest.mark.parametrize("words", [["evaluate"], ["evaluate", "--best"], ["train", "--resume", "--run-dir"]])
def test_a_checkpoint_of_a_later_format_is_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / "run-minatar", folder)
    (manifest,) = folder.glob("checkpoints/*/manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 3}))
    before = contents(folder)
    assert main([*words, str(folder)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith("gdi: error: ")
    assert "has format 3, and this version of gdi reads up to 2" in told[-1]
    assert "Traceback" not in "".join(told)
    assert contents(folder) == before


OWN = """
from dataclasses import dataclass
open({mark!r}, "a").close()  # whoever imports this module leaves a mark
from gdi.controller.static import FixedController

@dataclass(frozen=True)
class Mine:
    level: float = 0.5
    def build(self, space, rng):
        return FixedController(space)

class NoDataclass: ...
"""


def test_a_foreign_class_is_imported_only_with_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark, folder = tmp_path / "imported", tmp_path / "run"
    (tmp_path / "stranger.py").write_text(OWN.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copytree(DATA / "run-minatar", folder)
    data = json.loads(config_to_json(config_from_json((folder / "config.json").read_text())))

    def name_controller(kind: str, **fields: Any) -> None:
        (folder / "config.json").write_text(json.dumps({**data, "controller": {"kind": kind, **fields}}))

    name_controller("stranger:Mine", level=0.25)
    with pytest.raises(UserError, match="Mine of the module stranger"):
        gdi.load(folder)
    assert "say --trust" in error_line(["evaluate", str(folder)], capsys)
    assert "say --trust" in error_line(["train", "--run-dir", str(folder), "--resume"], capsys)
    assert not mark.exists()
    assert "stranger" not in sys.modules

    agent = gdi.load(folder, trust=True)
    assert mark.exists()
    assert agent.config.controller.level == 0.25
    classes = [type(agent.config.controller)]
    assert gdi.load(folder, classes=classes).config == agent.config
    assert json.loads(config_to_json(agent.config))["controller"] == {"kind": "stranger:Mine", "level": 0.25}
    for kind, words in (
        ("stranger:NoDataclass", "is not a dataclass"),
        ("stranger:Nobody", "cannot be imported"),
        ("nowhere:Mine", "cannot be imported"),
    ):
        name_controller(kind)
        assert words in error_line(["evaluate", str(folder), "--trust"], capsys)
    sys.modules.pop("stranger")
