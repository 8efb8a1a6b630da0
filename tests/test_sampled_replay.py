"""Sampled replay: uniform draws of whole slices, each frame once, a fixed number of updates, equal after a resume."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gdi.config import SampledReplayConfig
from gdi.data import Origin, SavedFiles, collector_state
from gdi.data.base import ONE_STREAM
from gdi.data.sampled import SampledReplay, make_layout
from gdi.data.slots import SlotStore
from gdi.networks.frames import FrameHistory, stack_frames
from gdi.types import Window, window_from

ENVS, STEPS = 3, 4
CONFIG = SampledReplayConfig(
    capacity_transitions=96,
    learn_start_transitions=12,
    batch_size_sequences=5,
    slice_steps=1,
    sequence_steps=STEPS,
    updates=1,
    period_transitions=4,
)


class Stream:
    """Windows of an endless stream. Step n of environment e has the observation 1000 e + n; episodes have 6 steps."""

    def __init__(self, context: int = 0, episode_steps: int = 6) -> None:
        self.time, self.context, self.episode_steps = 0, context, episode_steps
        self.history = FrameHistory(ENVS, (1,), np.dtype(np.float32), context + 1)
        self._start = np.ones(ENVS, bool)

    def _row(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Observation and whether an episode starts; the last row of each period of episode_steps + 1 is the reset."""
        place = n % (self.episode_steps + 1)
        obs = (1000.0 * np.arange(ENVS) + n)[:, None].astype(np.float32)
        return obs, np.full(ENVS, place == 0)

    def window(self) -> Window:
        times = self.time + np.arange(STEPS + 1)
        rows = [self._row(int(n)) for n in times]
        obs = np.stack([row[0] for row in rows])
        start = np.stack([row[1] for row in rows])
        frames = []
        if self.context:
            for t in range(STEPS):
                self.history.observe(obs[t], start[t])
                if t == 0:
                    frames = [*self.history.context.copy()]
        place = times[:-1] % (self.episode_steps + 1)
        ended = np.repeat((place == self.episode_steps - 1)[:, None], ENVS, 1)
        reset = np.repeat((place == self.episode_steps)[:, None], ENVS, 1)
        flat = np.zeros((STEPS, ENVS))
        long = np.zeros((STEPS + 1, ENVS))
        self.time += STEPS
        return window_from({
            "obs": np.concatenate([np.array(frames, np.float32).reshape(-1, ENVS, 1), obs]),
            "episode_start": start, "previous_action": long.astype(np.int64),
            "previous_reward": long.astype(np.float32),
            "index": np.zeros((STEPS + 1, ENVS, 1), np.float32), "action": np.repeat(times[:-1, None], ENVS, 1),
            "reward": flat.astype(np.float32), "terminated": ended, "truncated": flat > 0, "valid": ~reset,
            "behavior_prob": (flat + 1).astype(np.float32), "version": flat.astype(np.int64),
            "state": np.zeros((ENVS, 1, 0), np.float32),
        })  # fmt: skip


class Memory:
    def __init__(self, config: SampledReplayConfig, seed: int = 0, streams: int = 1) -> None:
        self.config = config
        layout = make_layout(config, ENVS, streams)
        self.replay = SampledReplay(config, layout, np.random.default_rng(seed))
        self.store = SlotStore(layout, config.slice_steps)

    def add(self, window: Window, origin: Origin = ONE_STREAM) -> None:
        self.store.put(self.replay.add(window, origin), window)

    def batches(self) -> list[Window]:
        draws = self.replay.due(last=False)
        found = [self.store.gather(draws, number) for number in range(len(draws))]
        self.replay.learned(len(found))
        self.store.keep(self.replay.kept())
        return found


def test_a_slice_is_one_stretch_of_one_stream_and_its_last_row_is_the_next_observation() -> None:
    memory, stream = Memory(replace(CONFIG, slice_steps=3)), Stream()
    seen = 0
    for _ in range(40):
        memory.add(stream.window())
        for batch in memory.batches():
            first = batch.obs[0, :, 0]
            np.testing.assert_array_equal(batch.obs[:, :, 0], first + np.arange(4)[:, None])
            np.testing.assert_array_equal(batch.action[:, :], first % 1000 + np.arange(3)[:, None])
            assert batch.valid[0].all()
            seen += batch.num_sequences
    assert seen > 100


def test_draws_are_uniform_over_the_transitions_in_memory_and_over_no_reset() -> None:
    memory, stream = Memory(CONFIG), Stream()
    for _ in range(11):  # more than fits: the oldest are gone
        memory.add(stream.window())
    slot, row, column = memory.replay._draw(60_000)
    counts = Counter(zip(slot.tolist(), row.tolist(), column.tolist(), strict=True))
    eligible = int(memory.replay._eligible.sum())
    assert len(counts) == eligible
    expected = 60_000 / eligible
    # χ² with eligible − 1 degrees of freedom: four standard deviations above its mean.
    chi = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi < eligible - 1 + 4 * np.sqrt(2 * (eligible - 1))


def test_the_oldest_steps_make_room_and_the_capacity_is_held() -> None:
    memory, stream = Memory(CONFIG), Stream(episode_steps=10**6)
    held = []
    for _ in range(60):
        memory.add(stream.window())
        held.append(int(memory.replay._valid.sum()))
        for batch in memory.batches():
            oldest = stream.time - 1 - batch.action.min()
            assert oldest * ENVS <= CONFIG.capacity_transitions + 3 * STEPS * ENVS
    assert CONFIG.capacity_transitions - STEPS * ENVS <= min(held[20:])
    assert max(held) <= CONFIG.capacity_transitions + STEPS * ENVS * memory.replay._layout.slot_windows


@pytest.mark.parametrize(("updates", "period"), [(1, 4), (2, 4), (3, 7), (1, 50)])
def test_updates_per_transition_are_exact(updates: int, period: int) -> None:
    config = replace(CONFIG, updates=updates, period_transitions=period)
    memory, stream = Memory(config), Stream()
    transitions = made = 0
    for _ in range(50):
        window = stream.window()
        transitions += int(window.valid.sum())
        memory.add(window)
        made += len(memory.batches())
        assert made == max(0, transitions - 12) // period * updates


@pytest.mark.parametrize("slice_steps", [1, 3])
def test_a_gathered_stack_is_the_one_that_was_acted_with(slice_steps: int) -> None:
    """Also at the first steps of an episode, and where a slice begins in the middle of a stored row."""
    context = 3
    memory, stream = Memory(replace(CONFIG, slice_steps=slice_steps)), Stream(context)
    acted = {}
    history = FrameHistory(ENVS, (1,), np.dtype(np.float32), context + 1)
    for n in range(300):
        obs, start = stream._row(n)
        stacks = history.observe(obs, start)
        acted |= {float(obs[e, 0]): stacks[e].copy() for e in range(ENVS)}
    compared = 0
    for _ in range(50):
        memory.add(stream.window())
        for batch in memory.batches():
            stacks = stack_frames(torch.from_numpy(batch.obs), torch.from_numpy(batch.episode_start), context + 1)
            for t, b in np.ndindex(slice_steps + 1, batch.num_sequences):
                np.testing.assert_array_equal(stacks[t, b].numpy(), acted[float(batch.obs[context + t, b, 0])])
                compared += 1
    assert compared > 500


@pytest.mark.parametrize("slice_steps", [1, 3])
def test_no_slice_reaches_into_a_stream_that_began_again(slice_steps: int) -> None:
    """An environment that cannot be saved begins new episodes after a resume, while the actor's steps go on."""
    config = replace(CONFIG, capacity_transitions=384, slice_steps=slice_steps)
    memory, stream = Memory(config), Stream(episode_steps=10**6)
    assert memory.replay._layout.slot_windows > 1
    memory.add(stream.window(), Origin(first_step=0))
    stream.time += 500
    again = stream.window()
    again.episode_start[0] = True
    memory.add(again, Origin(first_step=STEPS))
    slot, row, column = memory.replay._draw(2000)
    assert {*zip(slot.tolist(), row.tolist(), strict=True)} == {(s, r) for s in (0, 1) for r in range(5 - slice_steps)}
    batch = memory.store._take(slot, column, row)
    np.testing.assert_array_equal(batch.obs[:, :, 0], batch.obs[0, :, 0] + np.arange(slice_steps + 1)[:, None])


def assert_equal_batches(one: list[Window], two: list[Window]) -> int:
    for a, b in zip(one, two, strict=True):
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name])
    return len(one)


def saved(memory: Memory, folder: Path, before: SavedFiles | None = None) -> SavedFiles:
    folder.mkdir()
    return memory.store.save(folder, before)


def test_a_copy_from_a_checkpoint_draws_and_gathers_the_same(tmp_path: Path) -> None:
    one, stream = Memory(CONFIG), Stream(context=2)
    for _ in range(9):
        one.add(stream.window())
        one.batches()
    two = Memory(CONFIG, seed=5)
    assert two.store.load(saved(one, tmp_path / "files"))
    two.replay.load_state_dict(collector_state(one.replay.state_dict(), one.store.state_dict()))
    compared = 0
    for _ in range(20):
        window = stream.window()
        one.add(window)
        two.add(window)
        compared += assert_equal_batches(one.batches(), two.batches())
    assert compared > 20


def test_a_slot_is_written_once_and_linked_into_later_checkpoints(tmp_path: Path) -> None:
    """Slots of two windows: after 5 windows two are full and one is open, which alone is written again."""
    memory, stream = Memory(replace(CONFIG, capacity_transitions=192)), Stream()
    assert memory.replay._layout.slot_windows == 2
    for _ in range(5):
        memory.add(stream.window())
    first = saved(memory, tmp_path / "first")
    memory.add(stream.window())
    second = saved(memory, tmp_path / "second", first)
    assert sorted(first.sha256) == [f"slot-00000000{n}-0000{w}.safetensors" for n, w in ((0, 2), (1, 2), (2, 1))]
    assert sorted(second.sha256) == [f"slot-00000000{n}-0000{w}.safetensors" for n, w in ((0, 2), (1, 2), (2, 2))]
    links = {name: (second.folder / name).stat().st_nlink for name in second.sha256}
    assert sorted(links.values()) == [1, 2, 2]
    for files in (first, second):
        found = {name: hashlib.sha256((files.folder / name).read_bytes()).hexdigest() for name in files.sha256}
        assert found == files.sha256


@pytest.mark.parametrize("trouble", ["no links", "file gone"])
def test_where_links_are_impossible_files_are_copied_or_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    memory, stream = Memory(CONFIG), Stream()
    for _ in range(3):
        memory.add(stream.window())
    first = saved(memory, tmp_path / "first")
    before = {name: (first.folder / name).read_bytes() for name in first.sha256}
    if trouble == "no links":
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(PermissionError("no links here")))
    else:
        (first.folder / min(before)).unlink()
    second = saved(memory, tmp_path / "second", first)
    assert {name: (second.folder / name).read_bytes() for name in second.sha256} == before


def test_files_of_another_layout_are_not_taken(tmp_path: Path) -> None:
    one, stream = Memory(CONFIG), Stream()
    one.add(stream.window())
    files = saved(one, tmp_path / "files")
    assert not Memory(replace(CONFIG, capacity_transitions=192)).store.load(files)
    assert not Memory(CONFIG).store.load(SavedFiles(tmp_path, {}))


def test_a_memory_without_its_arrays_fills_to_the_learn_start_before_the_next_update() -> None:
    """24 transitions are the learn start and 4 bring an update. No update is made up for later."""
    config, stream = replace(CONFIG, learn_start_transitions=24), Stream(episode_steps=10**6)
    one = Memory(config)
    for _ in range(5):  # 60 transitions
        one.add(stream.window())
    assert len(one.replay.due(last=False)) == (60 - 24) // 4
    one.replay.learned(9)
    two = Memory(config)
    two.replay.load_state_dict(one.replay.state_dict(), arrays=False)
    made = []
    for _ in range(4):
        window = stream.window()
        two.add(window)
        made.append(len(two.batches()))
    assert made == [0, 0, 3, 3]  # 12 transitions each: 24 fill the memory, and each 12 after them bring 3 updates
    three = Memory(config)
    three.replay.load_state_dict(two.replay.state_dict())
    three.replay.load_state_dict(three.replay.state_dict(), arrays=False)
    three.add(stream.window())
    assert len(three.replay.due(last=False)) == 0


def test_streams_fill_slots_of_their_own() -> None:
    """Windows of two streams that take turns: no slice runs from one into the other."""
    config = replace(CONFIG, slice_steps=3, capacity_transitions=384)
    memory, streams = Memory(config, streams=2), [Stream(context=2), Stream(context=2)]
    assert memory.replay._layout.slot_windows > 2
    streams[1].time = 7 * 70  # the same place in an episode, so that flags do not tell the streams apart
    seen = set()
    for n in range(40):
        number = (n // 3) % 2
        memory.add(streams[number].window(), Origin(number))
        for batch in memory.batches():
            first = batch.obs[2, :, 0]
            np.testing.assert_array_equal(batch.obs[2:, :, 0], first + np.arange(4)[:, None])
            seen |= set((first % 1000 >= 490).tolist())
    assert seen == {False, True}


def test_a_stream_with_a_missing_window_goes_on_in_a_new_slot() -> None:
    config = replace(CONFIG, slice_steps=3, capacity_transitions=384, learn_start_transitions=400)
    memory, stream = Memory(config), Stream(context=2, episode_steps=10**6)
    keys = []
    for first_step in (0, 4, 12, 16):
        stream.time = first_step
        window = stream.window()
        keys.append(memory.replay.add(window, Origin(first_step=first_step)))
        memory.store.put(keys[-1], window)
    windows = memory.replay._layout.slot_windows
    assert keys == [0, 1, windows, windows + 1]
    slot, row, _ = memory.replay._draw(2000)
    # Slices of 3 steps begin at rows 0 to 5 of 8: the one that begins at 6 has no bootstrap row.
    assert {(s, r) for s, r in zip(slot.tolist(), row.tolist(), strict=True)} == {
        (s, r) for s in (0, 1) for r in range(6)
    }


def test_a_stream_whose_slot_was_overwritten_takes_a_new_one() -> None:
    memory = Memory(replace(CONFIG, capacity_transitions=192), streams=2)
    layout, stream = memory.replay._layout, Stream()
    memory.add(stream.window(), Origin(1))
    for _ in range(layout.num_slots * layout.slot_windows):
        memory.add(stream.window(), Origin(0))
    key = memory.replay.add(stream.window(), Origin(1))
    assert key == (layout.num_slots + 1) * layout.slot_windows  # not 1, in the slot that another stream fills


def test_batches_in_flight_are_drawn_again_after_a_resume() -> None:
    one, stream = Memory(CONFIG), Stream()
    for _ in range(4):
        one.add(stream.window())
    handed = len(one.replay.due(last=False))
    assert handed > 3
    one.replay.learned(2)
    two = Memory(CONFIG)
    two.replay.load_state_dict(one.replay.state_dict())
    assert len(two.replay.due(last=False)) == handed - 2


def test_a_memory_without_a_whole_slice_says_so() -> None:
    memory = Memory(replace(CONFIG, learn_start_transitions=0))
    nothing = SimpleNamespace(
        valid=np.zeros((STEPS, ENVS), bool), episode_start=np.zeros((STEPS + 1, ENVS), bool), num_sequences=ENVS
    )
    memory.replay.add(nothing)
    memory.replay._transitions = 40
    with pytest.raises(RuntimeError, match="no whole slice"):
        memory.replay.due(last=False)
