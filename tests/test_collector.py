"""The data collector: exactly N uses, bounded memory, nothing lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdi.acting.collector import Collector
from gdi.config import LearnerConfig
from gdi.types import Sequence, gather_columns, sequence_of

T = 3


def window(number: int, columns: int) -> Sequence:
    """Sequences that carry their own name: obs is (window, column)."""
    name = np.broadcast_to(
        np.stack([np.full(columns, number), np.arange(columns)], 1)[None], (T + 1, columns, 2)
    ).astype(np.float32)
    flat = np.zeros((T, columns))
    long = np.zeros((T + 1, columns))
    return Sequence(
        obs=name, episode_start=long > 0, previous_action=long.astype(np.int64), previous_reward=long,
        action=flat.astype(np.int64), reward=flat, terminated=flat > 0, truncated=flat > 0, valid=flat == 0,
        behavior_prob=flat + 1, index=np.zeros((T, columns, 3)), version=flat.astype(np.int64),
        state=np.stack([np.full((columns, 1), number), np.arange(columns)[:, None]], 2).astype(np.float32),
    )  # fmt: skip


def names(batch: Sequence) -> list[tuple[int, int]]:
    assert (batch.obs == batch.obs[:1]).all()
    np.testing.assert_array_equal(batch.obs[0], batch.state[:, 0])  # every field took the same columns
    return [(int(w), int(c)) for w, c in batch.obs[0]]


def drain(collector: Collector[Sequence], *, partial: bool = False) -> list[list[tuple[int, int]]]:
    batches = []
    while (uses := collector.next_uses(allow_partial=partial)) is not None:
        batches.append(names(gather_columns(uses)))
    return batches


def config(batch: int, replay: int, span: int) -> LearnerConfig:
    return replace(LearnerConfig(), batch_size_sequences=batch, replay=replay, replay_span_windows=span)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 9), columns=st.integers(1, 7), replay=st.integers(1, 5), span=st.integers(1, 6),
    windows=st.integers(1, 12), seed=st.integers(0, 99),
)  # fmt: skip
def test_every_sequence_is_trained_exactly_replay_times(batch, columns, replay, span, windows, seed) -> None:
    collector = Collector(config(batch, replay, span), np.random.default_rng(seed), sequence_of)
    seen: Counter[tuple[int, int]] = Counter()
    for number in range(windows):
        collector.add(window(number, columns))
        for names_of_batch in drain(collector):
            assert len(names_of_batch) == batch
            # Nothing older than the span is trained, but for what waited for its batch to fill.
            assert all(number - w <= span + batch for w, _ in names_of_batch)
            seen.update(names_of_batch)
        # Windows within the span, and those of at most one unfinished batch.
        assert len(collector.windows) <= span + batch
    collector.finish()
    for names_of_batch in drain(collector, partial=True):
        seen.update(names_of_batch)
    assert seen == {(w, c): replay for w in range(windows) for c in range(columns)}
    assert len(collector.windows) == 0
    assert collector.waiting == 0


def test_uses_are_spread_over_the_span() -> None:
    collector = Collector(config(4, replay=3, span=6), np.random.default_rng(0), sequence_of)
    ages: list[int] = []
    for number in range(12):
        collector.add(window(number, 4))
        ages += [number - w for names_of_batch in drain(collector) for w, _ in names_of_batch if w == 3]
    assert sorted(ages) == [0] * 4 + [2] * 4 + [4] * 4


def test_no_sequence_twice_in_one_batch_even_when_uses_fall_due_together() -> None:
    collector = Collector(config(8, replay=4, span=1), np.random.default_rng(0), sequence_of)
    collector.add(window(0, 8))
    batches = drain(collector)
    assert len(batches) == 4
    assert all(len(set(b)) == 8 for b in batches)


def test_batches_are_shuffled() -> None:
    collector = Collector(config(16, replay=1, span=1), np.random.default_rng(0), sequence_of)
    collector.add(window(0, 16))
    (batch,) = drain(collector)
    assert batch != sorted(batch)


def test_back_pressure() -> None:
    collector = Collector(config(4, replay=2, span=2), np.random.default_rng(0), sequence_of)
    assert collector.has_room
    collector.add(window(0, 4))
    assert not collector.has_room
    with pytest.raises(RuntimeError, match="full"):
        collector.add(window(1, 4))
    collector.next_uses()
    assert collector.has_room


def test_state_round_trip_continues_identically() -> None:
    def feed(collector: Collector[Sequence], numbers: range) -> list[list[tuple[int, int]]]:
        batches = []
        for number in numbers:
            collector.add(window(number, 5))
            batches += drain(collector)
        collector.finish()
        return batches + drain(collector, partial=True)

    one = Collector(config(4, replay=3, span=4), np.random.default_rng(1), sequence_of)
    for number in range(5):
        one.add(window(number, 5))
        drain(one)
    two = Collector(config(4, replay=3, span=4), np.random.default_rng(99), sequence_of)
    two.load_state_dict(one.state_dict())
    assert feed(one, range(5, 9)) == feed(two, range(5, 9))


def test_gather_columns_takes_the_named_columns_of_every_field() -> None:
    batch = gather_columns([(window(0, 5), np.array([4, 1])), (window(1, 3), np.array([2]))])
    assert names(batch) == [(0, 4), (0, 1), (1, 2)]
