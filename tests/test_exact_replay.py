"""Exact replay: exactly N uses, bounded memory, nothing lost, and draws in flight until they are learned."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdi.config import ExactReplayConfig
from gdi.data import Draws, WindowStore, collector_state, join_draws
from gdi.data.exact import ExactReplay
from gdi.types import Window, gather_columns, window_from

T = 3
Names = list[tuple[int, int]]


def window(number: int, columns: int) -> Window:
    """Sequences that carry their own name: obs is (window, column)."""
    name = np.broadcast_to(
        np.stack([np.full(columns, number), np.arange(columns)], 1)[None], (T + 1, columns, 2)
    ).astype(np.float32)
    flat = np.zeros((T, columns))
    long = np.zeros((T + 1, columns))
    return window_from({
        "obs": name, "episode_start": long > 0, "previous_action": long.astype(np.int64), "previous_reward": long,
        "index": np.zeros((T + 1, columns, 3)), "action": flat.astype(np.int64), "reward": flat, "terminated": flat > 0,
        "truncated": flat > 0, "valid": flat == 0, "behavior_prob": flat + 1, "version": flat.astype(np.int64),
        "state": np.stack([np.full((columns, 1), number), np.arange(columns)[:, None]], 2).astype(np.float32),
    })  # fmt: skip


def names(batch: Window) -> Names:
    assert (batch.obs == batch.obs[:1]).all()
    np.testing.assert_array_equal(batch.obs[0], batch.state[:, 0])  # every field took the same columns
    return [(int(w), int(c)) for w, c in batch.obs[0]]


class Memory:
    """A replay with its store, as the local runtime has them."""

    def __init__(self, batch: int, replay: int, span: int, seed: int = 0) -> None:
        config = ExactReplayConfig(batch_size_sequences=batch, replay=replay, replay_span_windows=span)
        self.replay = ExactReplay(config, np.random.default_rng(seed))
        self.store = WindowStore()
        self.added = 0

    def add(self, columns: int) -> None:
        new = window(self.added, columns)
        self.store.put(self.replay.add(new), new)
        self.added += 1

    def draw(self, *, last: bool = False) -> list[Names]:
        draws = self.replay.due(last=last)
        return [names(self.store.gather(draws, number)) for number in range(len(draws))]

    def learned(self, batches: int) -> None:
        self.replay.learned(batches)
        self.store.keep(self.replay.kept())

    def drain(self, *, last: bool = False) -> list[Names]:
        batches = self.draw(last=last)
        self.learned(len(batches))
        return batches

    def copy(self, seed: int) -> Memory:
        """As a checkpoint makes it."""
        other = Memory(self.replay._batch_size, self.replay._replay, self.replay._span, seed)
        state = collector_state(self.replay.state_dict(), self.store.state_dict())
        other.replay.load_state_dict(state)
        other.store.load_state_dict(state)
        other.added = self.added
        return other


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 9), columns=st.integers(1, 7), replay=st.integers(1, 5), span=st.integers(1, 6),
    windows=st.integers(1, 12), seed=st.integers(0, 99),
)  # fmt: skip
def test_every_sequence_is_trained_exactly_replay_times(batch, columns, replay, span, windows, seed) -> None:
    memory = Memory(batch, replay, span, seed)
    seen: Counter[tuple[int, int]] = Counter()
    for number in range(windows):
        memory.add(columns)
        for names_of_batch in memory.drain():
            assert len(names_of_batch) == batch
            # Nothing older than the span is trained, but for what waited for its batch to fill.
            assert all(number - w <= span + batch for w, _ in names_of_batch)
            seen.update(names_of_batch)
        # Windows within the span, and those of at most one unfinished batch.
        assert len(memory.store) <= span + batch
    for names_of_batch in memory.drain(last=True):
        seen.update(names_of_batch)
    assert seen == {(w, c): replay for w in range(windows) for c in range(columns)}
    assert len(memory.store) == 0
    assert memory.replay.waiting == 0


def test_uses_are_spread_over_the_span() -> None:
    memory = Memory(4, replay=3, span=6)
    ages: list[int] = []
    for number in range(12):
        memory.add(4)
        ages += [number - w for names_of_batch in memory.drain() for w, _ in names_of_batch if w == 3]
    assert sorted(ages) == [0] * 4 + [2] * 4 + [4] * 4


def test_no_sequence_twice_in_one_batch_even_when_uses_fall_due_together() -> None:
    memory = Memory(8, replay=4, span=1)
    memory.add(8)
    batches = memory.drain()
    assert len(batches) == 4
    assert all(len(set(b)) == 8 for b in batches)


def test_batches_are_shuffled() -> None:
    memory = Memory(16, replay=1, span=1)
    memory.add(16)
    (batch,) = memory.drain()
    assert batch != sorted(batch)


def test_a_batch_is_grouped_by_window_in_the_order_of_the_first_draw() -> None:
    """One copy per window gathers it; another order of columns would be another gradient in its last bits."""
    newest_first = 0
    for seed in range(10):
        memory = Memory(8, replay=2, span=2, seed=seed)
        memory.add(8)
        memory.drain()
        memory.add(8)  # the second use of window 0 and the first of window 1, shuffled together: two batches
        drawn = [(key, column) for key, column in memory.replay._due.tolist()]
        for number, batch in enumerate(memory.drain()):
            in_draw_order = drawn[number * 8 : (number + 1) * 8]
            order = list(dict.fromkeys(key for key, _ in in_draw_order))
            assert batch == [(key, column) for first in order for key, column in in_draw_order if key == first]
            newest_first += order == [1, 0]
    assert 0 < newest_first < 2 * 10


def test_back_pressure() -> None:
    memory = Memory(4, replay=2, span=2)
    assert memory.replay.has_room
    memory.add(4)
    assert not memory.replay.has_room
    with pytest.raises(RuntimeError, match="full"):
        memory.add(4)
    memory.replay.due(last=False)
    assert memory.replay.has_room


def test_a_window_is_kept_until_its_last_draw_is_learned() -> None:
    memory = Memory(2, replay=1, span=1)
    memory.add(4)
    assert len(memory.draw()) == 2
    memory.learned(1)
    assert memory.replay.kept() == [0]
    assert memory.replay.waiting == 2
    memory.learned(1)
    assert memory.replay.kept() == []


def test_what_was_in_flight_is_due_again_after_a_resume() -> None:
    """Three batches are drawn and one is learned when the run ends: the resumed one trains the other two, in order."""
    memory = Memory(2, replay=1, span=1)
    memory.add(7)
    drawn = memory.draw()
    memory.learned(1)
    resumed = memory.copy(seed=99)
    assert resumed.draw() == drawn[1:]
    rest = resumed.drain(last=True)
    assert sorted(name for batch in [*drawn, *rest] for name in batch) == [(0, column) for column in range(7)]


def test_draws_of_two_iterations_may_be_in_flight() -> None:
    """On Ray the next batches are drawn before the last ones are learned; the oldest are learned first."""
    memory = Memory(2, replay=2, span=2)
    memory.add(2)
    first = memory.draw()
    memory.add(2)
    second = memory.draw()
    memory.learned(len(first))
    assert memory.copy(seed=5).draw() == second


def test_only_the_last_batch_of_a_run_is_smaller() -> None:
    """7 sequences, each trained twice, are 14 draws: three batches of 4, and one of 2."""
    memory = Memory(4, replay=2, span=3)
    memory.add(7)
    batches = memory.drain()
    assert list(map(len, batches)) == [4]
    assert list(map(len, memory.drain(last=True))) == [4, 4, 2]
    assert memory.drain(last=True) == []


@pytest.mark.parametrize("learned", [0, 1, 2, 3])
def test_a_run_that_ends_in_its_last_batches_resumes_with_those_that_are_left(learned: int) -> None:
    memory = Memory(4, replay=2, span=3)
    memory.add(7)
    memory.drain()
    drawn = memory.draw(last=True)
    memory.learned(learned)
    resumed = memory.copy(seed=99)
    assert resumed.replay.waiting == sum(map(len, drawn[learned:]))
    assert resumed.drain(last=True) == drawn[learned:]
    assert resumed.replay.kept() == []


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 6), columns=st.integers(1, 7), replay=st.integers(1, 4), span=st.integers(1, 4),
    windows=st.integers(1, 6), share=st.floats(0.0, 1.0),
)  # fmt: skip
def test_a_resumed_replay_hands_out_what_is_left_in_the_same_order(
    batch, columns, replay, span, windows, share
) -> None:
    """It stops after some of the batches in flight; whoever goes on without a break draws nothing else."""
    one = Memory(batch, replay, span, seed=3)
    for _ in range(windows):
        one.drain()
        one.add(columns)
    in_flight = one.draw()
    done = int(share * len(in_flight))
    one.learned(done)
    two = one.copy(seed=99)
    assert two.replay.waiting == one.replay.waiting
    assert two.replay.kept() == one.replay.kept()
    assert two.drain() == in_flight[done:]
    one.learned(len(in_flight) - done)
    for _ in range(3):
        one.add(columns)
        two.add(columns)
        assert two.drain() == one.drain()
    assert two.drain(last=True) == one.drain(last=True)


def test_state_round_trip_continues_identically() -> None:
    def feed(memory: Memory) -> list[Names]:
        batches = []
        for _ in range(4):
            memory.add(5)
            batches += memory.drain()
        return batches + memory.drain(last=True)

    one = Memory(4, replay=3, span=4, seed=1)
    for _ in range(5):
        one.add(5)
        one.drain()
    two = one.copy(seed=99)
    assert feed(one) == feed(two)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_parts_of_several_learners_are_the_batch(size: int) -> None:
    draws = Draws(np.array([9, 9, 3, 3, 3, 7, 7]), np.array([4, 1, 0, 2, 5, 6, 3]), np.array([0, 5, 7]))

    def flat(parts: list[tuple[int, np.ndarray, np.ndarray]]) -> Names:
        return [(key, int(column)) for key, columns, _ in parts for column in columns]

    for number, whole in enumerate([[(9, 4), (9, 1), (3, 0), (3, 2), (3, 5)], [(7, 6), (7, 3)]]):
        assert flat(draws.batch(number)) == whole
        parts = [flat(draws.batch(number, rank, size)) for rank in range(size)]
        assert [name for part in parts for name in part] == whole
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_neighbors_of_one_window_come_together_and_a_part_may_be_empty() -> None:
    draws = Draws(np.array([9, 9, 3]), np.array([4, 1, 0]), np.array([0, 3]))
    ((first, first_columns, _), (second, second_columns, _)) = draws.batch(0)
    assert (first, first_columns.tolist(), second, second_columns.tolist()) == (9, [4, 1], 3, [0])
    # 3 draws for 5 learners: parts end at 0.6, 1.2, 1.8, 2.4 and 3, rounded down.
    assert [sum(len(columns) for _, columns, _ in draws.batch(0, rank, 5)) for rank in range(5)] == [0, 1, 0, 1, 1]


def test_joined_draws_are_their_batches_in_order() -> None:
    one = Draws(np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([0, 1, 3]))
    none = Draws(np.zeros(0, np.int64), np.zeros(0, np.int64), np.array([0]))
    two = Draws(np.array([5]), np.array([4]), np.array([0, 1]))
    joined = join_draws([one, none, two])
    assert joined.bounds.tolist() == [0, 1, 3, 4]
    assert joined.key.tolist() == [0, 0, 1, 5]
    assert joined.column.tolist() == [1, 2, 3, 4]


def test_gather_columns_takes_the_named_columns_of_every_field() -> None:
    batch = gather_columns([(window(0, 5), np.array([4, 1])), (window(1, 3), np.array([2]))])
    assert names(batch) == [(0, 4), (0, 1), (1, 2)]
