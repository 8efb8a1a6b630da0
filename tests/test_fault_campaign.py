"""The fault campaign in its short form: a few trials of each local part, and readers fed by hypothesis."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gdi.cli.main import COMMANDS
from gdi.config import config_from_json, config_to_json
from gdi.errors import UserError
from gdi.presets import make_config
from gdi.runtime.manifest import CorruptCheckpointError, read_facts
from gdi.runtime.run_log import read_metrics
from gdi.scores.readers import load_agents

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from faults.damage import damaged_folders, flipped_bits
from faults.disks import broken_disks, may_mount
from faults.fuzz import OPTIONS, fuzzed_inputs
from faults.kills import local_kills
from faults.record import Record, Trial

SHORT = {
    "damage": (damaged_folders, 4),
    "flips": (flipped_bits, 6),
    "fuzz": (fuzzed_inputs, 12),
    "kills": (local_kills, 2),
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("campaign")


def put_away(victim: Path) -> None:
    """Make room for the run of the next trial. All trials share the undisturbed runs beside it."""
    if victim.exists():
        victim.rename(tempfile.mkdtemp(dir=victim.parent))


@pytest.mark.kill
@pytest.mark.parametrize("part", SHORT)
def test_a_few_trials_of_each_part_survive(part: str, work: Path) -> None:
    trials, count = SHORT[part]
    made: list[Trial] = []
    for attempt in range(20):  # on a fast machine a run may end before it is killed, which is no trial
        put_away(work / "victim")
        made += trials(attempt * 5, random.Random(attempt), work)  # every fifth number is of gdi-i3
        if len(made) >= count:
            break
    assert len(made) >= count
    assert [trial for trial in made if trial.outcome != "survived"] == []


def test_the_campaign_knows_options_of_every_command() -> None:
    assert set(OPTIONS) == set(COMMANDS) - {"train"}


@pytest.mark.kill
@pytest.mark.parametrize("way", [0, 1, 2], ids=["full", "read-only", "vanishing"])
def test_a_broken_disk_loses_nothing(way: int, work: Path) -> None:
    if not may_mount(work):
        pytest.skip("this system does not let a user mount a small disk")
    put_away(work / "victim")
    (trial,) = broken_disks(way, random.Random(way), work)
    assert trial.outcome == "survived", trial


def test_the_record_continues_and_counts(tmp_path: Path) -> None:
    record = Record(tmp_path / "trials.jsonl")
    for number, outcome in enumerate(("survived", "survived", "lost")):
        record.add(Trial("kills", number, outcome, "why"))
    again = Record(tmp_path / "trials.jsonl")
    assert again.count("kills") == 3
    assert not again.is_clean
    assert again.table().splitlines()[-1] == "| kills | 3 | 2 | 1 | 0 | 0 |"
    assert again.failures() == ["kills 2: lost: why"]


def quick(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


WORDS = st.sampled_from(
    ["game", "score", "seed", "pong", "breakout", "1", "-3.5", "nan", "", "#", '"', "\x1b[1m", "{", "["]
)
TABLES = st.lists(st.lists(WORDS | st.text(max_size=4), max_size=4).map(",".join), max_size=5).map("\n".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@quick(150)
@given(text=TABLES | JSON.map(json.dumps) | st.text())
def test_scores_are_read_or_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(UserError):
        assert all(agent.name.isprintable() for agent in load_agents([str(path)]).agents)


@quick(150)
@given(field=st.sampled_from(sorted(json.loads(config_to_json(make_config("gdi-i3", "CartPole-v1"))))), value=JSON)
def test_configs_are_read_or_refused(field: str, value: object) -> None:
    data = json.loads(config_to_json(make_config("gdi-i3", "CartPole-v1")))
    with suppress(UserError, ValueError, TypeError):
        config_from_json(json.dumps({**data, field: value}))


@quick(100)
@given(content=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_manifests_and_logs_are_read_or_refused(content: bytes, tmp_path: Path) -> None:
    for name in ("manifest.json", "metrics.jsonl"):
        (tmp_path / name).write_bytes(content)
    assert all(line["kind"] == "train" for line in read_metrics(tmp_path, "train"))
    with suppress(CorruptCheckpointError, UserError, ValueError):
        read_facts(tmp_path)
