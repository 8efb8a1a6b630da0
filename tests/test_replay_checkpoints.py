"""Checkpoints of a sampled replay: its slots are files that checkpoints share, or are not saved at all."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gdi
from gdi.config import Config
from helpers import RecordingConsole, change, read_metric_lines, saved_network, stop_after, tiny_config
from systems import small

CONFIG = small("dqn", capacity_transitions=2400)  # slots of 18 windows of 8 x 2 steps; a checkpoint every 500 steps


class Notices(RecordingConsole):
    """A console that stops the run at a number of steps, and records its notices."""

    def __init__(self, steps: int = 10**9) -> None:
        super().__init__()
        self._stopper = stop_after(steps)

    def event(self, event: dict[str, object]) -> None:
        super().event(event)
        self._stopper.event(event)


def slots(checkpoint: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(checkpoint.glob("slot-*"))}


def checkpoints(run_dir: Path) -> list[Path]:
    return sorted((run_dir / "checkpoints").glob("step-*"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gdi.train(CONFIG, tmp_path_factory.mktemp("whole") / "run").run_dir


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that was stopped after 1,700 of its 2,000 steps. Copy it before you change it."""
    return gdi.train(CONFIG, tmp_path_factory.mktemp("stopped") / "run", console=stop_after(1700)).run_dir


@pytest.fixture
def part(stopped: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stopped, tmp_path / "run")


def test_checkpoints_share_the_slots_that_did_not_change(whole: Path) -> None:
    first, *_, last = checkpoints(whole)
    shared = slots(first).keys() & slots(last).keys()
    assert len(shared) >= 2
    for name in shared:
        assert slots(first)[name].samefile(slots(last)[name])
    assert slots(last).keys() - slots(first).keys()
    manifest = json.loads((last / "manifest.json").read_text())["sha256"]
    assert set(slots(last)) | {"tensors.safetensors", "state.json"} == set(manifest)


def test_pruning_a_checkpoint_keeps_the_slots_of_the_others(tmp_path: Path, whole: Path) -> None:
    config = replace(CONFIG, run=replace(CONFIG.run, keep_checkpoints=1))
    part = gdi.train(config, tmp_path / "run", console=stop_after(1700)).run_dir
    assert len(checkpoints(part)) <= 2  # the newest and the best
    assert gdi.train(config, part, resume=True).finished
    assert read_metric_lines(part) == read_metric_lines(whole)


def test_a_damaged_slot_falls_back_to_the_checkpoint_before_it(part: Path, whole: Path) -> None:
    before, newest = checkpoints(part)[-2:]
    own = sorted(slots(newest).keys() - slots(before).keys())[0]
    data = bytearray(slots(newest)[own].read_bytes())
    data[len(data) // 2] ^= 1  # one flipped bit
    slots(newest)[own].write_bytes(data)
    assert gdi.load(part).steps == int(newest.name[5:17])  # an agent needs no replay
    console = Notices()
    gdi.train(CONFIG, part, resume=True, console=console)
    (told,) = console.notices
    assert newest.name in told
    assert own in told
    assert read_metric_lines(part) == read_metric_lines(whole)
    for key, value in saved_network(whole).items():
        np.testing.assert_array_equal(value, saved_network(part)[key])


def test_a_slot_that_is_gone_falls_back_as_well(part: Path, whole: Path) -> None:
    newest = checkpoints(part)[-1]
    max(slots(newest).values()).unlink()
    console = Notices()
    gdi.train(CONFIG, part, resume=True, console=console)
    assert newest.name in console.notices[0]
    assert read_metric_lines(part) == read_metric_lines(whole)


def without_replay(config: Config) -> Config:
    return change(config, save_replay=False)


def test_without_a_saved_replay_a_resumed_run_fills_it_first_and_says_so(tmp_path: Path) -> None:
    """200 transitions fill it and bring no update. All others after the first 200 bring one per 4."""
    config = without_replay(CONFIG)
    part = gdi.train(config, tmp_path / "run", console=stop_after(1100))
    assert part.updates == (part.steps - 200) // 4
    assert not any(slots(path) for path in checkpoints(part.run_dir))
    console = Notices(part.steps + 150)
    filling = gdi.train(config, part.run_dir, resume=True, console=console)
    assert filling.updates == part.updates
    assert "200 steps fill it again" in console.notices[0]
    # The second session's fill was not complete. The third one fills from the start.
    resumed = gdi.train(config, part.run_dir, resume=True)
    assert resumed.finished
    assert filling.steps < part.steps + 200
    filled = filling.steps - part.steps + 200
    assert resumed.updates == (CONFIG.steps - filled - 200) // 4


def test_exact_replay_can_be_left_out_too(tmp_path: Path, whole_run: Path) -> None:
    """The uses that waited are dropped: fewer updates than with them, and the run ends."""
    updates = read_metric_lines(whole_run)[-1]["updates"]
    config = without_replay(tiny_config())
    part = gdi.train(config, tmp_path / "part", console=stop_after(1100)).run_dir
    console = Notices()
    resumed = gdi.train(config, part, resume=True, console=console)
    assert resumed.finished
    assert "waiting uses are dropped" in console.notices[0]
    assert updates - 20 <= resumed.updates < updates
