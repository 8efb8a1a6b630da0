"""States that a run keeps for pictures: which, with what beside them, and that keeping them changes nothing else."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gdi
from gdi.acting.actor import Actor
from gdi.acting.states import SURPLUS, StatePicker, picked_share
from gdi.config import Config
from gdi.envs.toy import make_toy
from gdi.networks import AgentNetwork, Seen
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.states import MAX_FILE_BYTES, Reservoir, StateRecorder, halved, packed
from gdi.types import Array, Index, SeenStates
from helpers import change, make_actor, stop_after, tiny_config

ENVS, HALF = 3, 0.5


def counting_actor(share: float, seed: int = 0) -> tuple[Actor, AgentNetwork]:
    actor, network = make_actor(make_toy("Toy/Counting-v0", ENVS), tiny_config("Toy/Counting-v0", sequence_steps=7))
    actor._picker = StatePicker(seed, share)
    return actor, network


def collected(actor: Actor, recorder: StateRecorder, windows: int, steps: int = 0) -> int:
    """Play windows whose λ names environment and episode, and return the number of transitions."""
    count: Counter[int] = Counter()

    def propose(envs: list[int]) -> list[Index]:
        drawn = [(float(env), float(count[env]), HALF) for env in envs]
        count.update(envs)
        return drawn

    for _ in range(windows):
        _, transitions, _ = actor.collect(propose, 10**9)
        steps += transitions
        recorder.add(steps, actor.picked_states())
    return steps


def rows_of(recorder: StateRecorder, stage: int) -> dict[str, Array]:
    return recorder._stages[stage].rows


def seen(keys: list[float], size: tuple[int, ...] = (1,)) -> SeenStates:
    count = len(keys)
    obs = np.broadcast_to(np.array(keys, np.float32).reshape(-1, *(1 for _ in size)), (count, *size))
    name = np.stack([np.zeros(count), np.arange(count), np.zeros(count)], -1).astype(np.int64)
    nothing = np.zeros((0, 3), np.int64)
    value = np.zeros(count, np.float32)
    return SeenStates(obs, value, np.zeros((count, 1), np.float32), np.array(keys), name, nothing, np.zeros(0))


def test_each_state_has_its_lambda_its_value_and_the_return_of_its_own_episode(tmp_path: Path) -> None:
    actor, network = counting_actor(share=1.0)
    recorder = StateRecorder(tmp_path, per_stage=10_000, total_steps=10**9)
    collected(actor, recorder, windows=8)
    rows = rows_of(recorder, 0)
    env, episode = rows["index"][:, 0], rows["index"][:, 1]
    np.testing.assert_array_equal(rows["obs"][:, 0], episode)  # Counting shows the episode's number
    length = 5 + env  # and its copy e plays 5 + e steps, each of which pays its number: 0 + 1 + ... + (length - 1)
    ended = ~np.isnan(rows["episode_return"])
    np.testing.assert_array_equal(rows["episode_return"][ended], (length * (length - 1) / 2)[ended])
    # 8 windows of 7 steps. Episode k of copy e begins at step k (6 + e), after a reset, and takes 5 + e steps.
    np.testing.assert_array_equal(ended, episode * (6 + env) + 5 + env <= 8 * 7)
    assert 0 < (~ended).sum() == 8 * 7 - 9 * 6  # only copy 0 is inside an episode, its tenth
    obs = torch.from_numpy(rows["obs"])[None]
    nothing = torch.zeros(obs.shape[:2])
    with torch.no_grad():
        index, none = torch.from_numpy(rows["index"])[None], nothing[..., None][..., :0]
        inputs = Seen(obs, nothing.bool(), nothing.long(), nothing, index, none, none.bool())
        value = network(inputs, network.initial_state(obs.shape[1])).head.value[0, :, 0]
    np.testing.assert_allclose(rows["value"], value.numpy(), rtol=1e-5, atol=1e-6)


def test_resets_are_no_states_and_every_transition_is_offered(tmp_path: Path) -> None:
    actor, _ = counting_actor(share=1.0)
    recorder = StateRecorder(tmp_path, per_stage=10_000, total_steps=10**9)
    steps = collected(actor, recorder, windows=8)
    assert len(rows_of(recorder, 0)["key"]) == steps


def test_an_interrupted_episode_gets_no_return_of_another(tmp_path: Path) -> None:
    actor, _ = counting_actor(share=1.0)
    recorder = StateRecorder(tmp_path, per_stage=10_000, total_steps=10**9)
    steps = collected(actor, recorder, windows=1)
    actor._restart_episodes()
    collected(actor, recorder, windows=8, steps=steps)
    rows = rows_of(recorder, 0)
    # Copy 0 plays 5 steps and resets, so its second episode begins with the seventh step and is interrupted there.
    interrupted = (rows["episode"] == [0, 7, 0]).all(1)
    assert interrupted.sum() == 1
    assert np.isnan(rows["episode_return"][interrupted]).all()
    assert not np.isnan(rows["episode_return"][(rows["episode"][:, 1] == 1) & (rows["episode"][:, 0] == 0)]).any()


def test_episodes_of_two_actors_have_different_names(tmp_path: Path) -> None:
    """An actor on Ray that was replaced counts its steps from 0 again."""
    names = []
    for seed in (0, 1):
        actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), tiny_config("Toy/Counting-v0", sequence_steps=7), seed)
        actor._picker = StatePicker(0, 1.0)
        recorder = StateRecorder(tmp_path, per_stage=10_000, total_steps=10**9)
        collected(actor, recorder, windows=2)
        names.append({tuple(name) for name in rows_of(recorder, 0)["episode"].tolist()})
    assert not names[0] & names[1]


def test_the_sample_is_the_smallest_keys_whatever_the_windows() -> None:
    rng = np.random.default_rng(3)
    keys = rng.random(2000).tolist()
    whole, cut = Reservoir(50), Reservoir(50)
    whole.add(1, seen(keys))
    for begin in range(0, 2000, 37):
        cut.add(begin, seen(keys[begin : begin + 37]))
    assert whole.rows["key"].tolist() == cut.rows["key"].tolist() == sorted(keys)[:50]
    np.testing.assert_array_equal(whole.rows["obs"], cut.rows["obs"])


def test_picked_states_are_spread_evenly_over_steps_and_environments(tmp_path: Path) -> None:
    actor, _ = counting_actor(share=picked_share(400, 4000))
    recorder = StateRecorder(tmp_path, per_stage=400, total_steps=10**9)
    steps = collected(actor, recorder, windows=240)
    assert steps >= 4000
    rows = rows_of(recorder, 0)
    assert len(rows["key"]) == 400  # the surplus of one half is above five standard deviations of the picked number
    first_half = np.mean(rows["episode"][:, 1] < 240 * 7 / 2)
    assert abs(first_half - 0.5) < 4 * np.sqrt(0.25 / 400)
    # Copy e spends 5 + e of 6 + e steps in transitions, so copies have nearly equal shares of the states.
    shares = np.bincount(rows["episode"][:, 2], minlength=ENVS) / 400
    expected = np.array([5 / 6, 6 / 7, 7 / 8]) / (5 / 6 + 6 / 7 + 7 / 8)
    assert np.abs(shares - expected).max() < 4 * np.sqrt(2 / 9 / 400)


def test_the_surplus_is_enough_and_no_share_is_above_one() -> None:
    assert picked_share(1000, 100) == 1.0
    share = picked_share(1000, 200_000)
    assert share == SURPLUS * 1000 / 200_000
    few = 1000 - 200_000 * share  # how far the wanted number is below the expected one
    assert few < -12 * np.sqrt(200_000 * share * (1 - share))


def test_steps_go_to_the_thirds_of_the_run(tmp_path: Path) -> None:
    recorder = StateRecorder(tmp_path, per_stage=10, total_steps=300)
    for steps in (1, 100, 101, 200, 201, 300):
        recorder.add(steps, seen([steps / 1000]))
    kept = [sorted(rows_of(recorder, stage)["key"]) for stage in range(3)]
    assert kept == [[0.001, 0.1], [0.101, 0.2], [0.201, 0.3]]


@pytest.mark.parametrize(("size", "dtype"), [((84, 84), np.uint8), ((96, 96, 3), np.uint8), ((1000,), np.float32)])
def test_a_file_of_noise_stays_below_one_megabyte(size: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(0)
    stage = Reservoir(1000)
    stage.add(1, seen(rng.random(1000).tolist(), size))
    stage.rows["obs"] = rng.integers(0, 256, (1000, *size)).astype(dtype)
    assert MAX_FILE_BYTES / 4 < len(packed(stage)) <= MAX_FILE_BYTES


def test_a_halved_image_is_the_mean_of_four_pixels() -> None:
    image = np.array([[[0, 1, 9], [2, 5, 9], [9, 9, 9]]], np.uint8)  # an odd last row and column are dropped
    assert halved(image).tolist() == [[[2]]]  # (0 + 1 + 2 + 5) / 4
    assert halved(image).dtype == np.uint8


def run_config(**settings: int) -> Config:
    config = change(tiny_config(steps=1500), **{"states_per_stage": 60, **settings})
    return replace(config, evaluation=replace(config.evaluation, every_steps=10_000))


def test_keeping_states_changes_nothing_else(tmp_path: Path) -> None:
    for name, kept in (("with", 60), ("without", 0)):
        gdi.train(run_config(states_per_stage=kept), tmp_path / name)
    assert sorted(path.name for path in (tmp_path / "with" / "states").iterdir()) == [
        f"stage-{number}.npz" for number in (1, 2, 3)
    ]
    assert not (tmp_path / "without" / "states").exists()
    logs = [(tmp_path / name / "episodes.csv").read_text() for name in ("with", "without")]
    assert logs[0] == logs[1]
    metrics = [
        [{**json.loads(line), "clock": 0} for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("with", "without")
    ]
    assert metrics[0] == metrics[1]


def test_a_resumed_run_keeps_the_states_of_an_uninterrupted_one(tmp_path: Path) -> None:
    config = run_config()
    gdi.train(config, tmp_path / "whole")
    gdi.train(config, tmp_path / "cut", console=stop_after(700))
    gdi.train(config, tmp_path / "cut", resume=True)
    for number in (1, 2, 3):
        files = [(tmp_path / name / "states" / f"stage-{number}.npz").read_bytes() for name in ("whole", "cut")]
        assert files[0] == files[1]
    with np.load(tmp_path / "cut" / "states" / "stage-2.npz") as stage:
        assert len(stage["obs"]) == 60
        assert stage["steps"][0] > 500 >= stage["steps"][0] - 40  # one window of 8 · 5 steps
        assert stage["steps"][1] <= 1000


def test_only_what_changed_or_is_gone_is_written_again(tmp_path: Path) -> None:
    recorder = StateRecorder(tmp_path, per_stage=10, total_steps=300)
    recorder.add(100, seen([0.5]))
    recorder.add(200, seen([0.5]))
    recorder.write()
    first, second = (tmp_path / "states" / f"stage-{number}.npz" for number in (1, 2))
    assert second.read_bytes()
    first.write_bytes(b"as it was")
    recorder.add(200, seen([0.1]))
    recorder.write()
    assert first.read_bytes() == b"as it was"
    assert len(np.load(second)["obs"]) == 2
    first.unlink()
    recorder.write()
    assert len(np.load(first)["obs"]) == 1
    ended = replace(seen([]), ended=np.zeros((1, 3), np.int64), ended_return=np.array([7.0]))
    recorder.add(300, ended)  # of an episode that began in the first stage
    recorder.write()
    assert np.load(first)["episode_return"] == [7.0]


def test_an_older_run_can_be_resumed_and_keeps_states_from_then_on(tmp_path: Path) -> None:
    gdi.train(run_config(states_per_stage=0), tmp_path / "run", console=stop_after(700))
    assert gdi.train(run_config(), tmp_path / "run", resume=True).finished
    assert sorted(path.name for path in (tmp_path / "run" / "states").iterdir()) == ["stage-2.npz", "stage-3.npz"]


def test_the_keys_of_the_states_in_a_checkpoint_are_these(tmp_path: Path) -> None:
    gdi.train(run_config(), tmp_path / "run", console=stop_after(300))
    state = CheckpointStore(tmp_path / "run" / "checkpoints", 1, lambda text: None).newest()
    assert state is not None
    stages = state["run"]["states"]
    assert set(stages) == {"0", "1", "2"}
    assert set(stages["0"]) == {"rows", "steps"}
    assert set(stages["0"]["rows"]) == {"obs", "value", "index", "key", "episode", "episode_return"}
