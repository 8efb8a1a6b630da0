"""The Ray runtime's parts, one by one, without a Ray: the pool of actors, the learners' shares, the drawn indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gdi.placement import PlacementConfig
from gdi.types import Index
from ray_runs import QUICK

pytest.importorskip("ray")


class Recorded:
    """A handle of an actor that does nothing, whose references are the names of what was asked."""

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *_: name)


def pool_of(placement: PlacementConfig, wanted: Callable[[], int]) -> Any:
    from gdi.runtime.ray.pool import ActorPool

    return ActorPool(lambda *_: Recorded(), placement, 100, wanted, lambda _: None, lambda: None)


def test_an_actor_that_waits_for_a_processor_is_not_taken_for_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time begins when its process lives."""
    there: list[str] = []
    now = [0.0]
    lost: list[str] = []
    monkeypatch.setattr("gdi.runtime.ray.pool._finished", lambda references: [r for r in references if r in there])
    monkeypatch.setattr("gdi.runtime.ray.pool.time", SimpleNamespace(monotonic=lambda: now[0]))
    pool = pool_of(replace(QUICK, hang_seconds=10.0), lambda: 1)
    monkeypatch.setattr(pool, "_replace_actor", lambda member, why: lost.append(why))
    pool.start()
    for now[0] in (20.0, 40.0):
        pool._kill_hung()
    there.append("__ray_ready__")
    for now[0] in (50.0, 59.0):
        pool._kill_hung()
    assert lost == []
    now[0] = 61.0
    pool._kill_hung()
    assert lost == ["it did not start within 10 s and was killed"]


def test_who_leaves_delivers_first(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[object] = []
    monkeypatch.setattr("gdi.runtime.ray.pool.ray.kill", killed.append)
    wanted = [2]
    pool = pool_of(QUICK, lambda: wanted[0])
    pool.start()
    leaver = pool._members[1]
    leaver.tasks.append("a window")
    wanted[0] = 1
    pool._match_actor_count()
    assert killed == []
    leaver.tasks.clear()
    pool._match_actor_count()
    assert killed == [leaver.handle]
    assert list(pool._members) == [0]


def test_saving_keeps_a_state_not_yet_continued_and_does_not_wait_for_a_hung_actor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("gdi.runtime.ray.pool._finished", lambda _, seconds: waited.append(seconds) or [])
    pool = pool_of(replace(QUICK, hang_seconds=300.0, queue_windows=2), lambda: 2)
    pool.start({1: {"generator": 5}})
    pool._members[0].ready = True  # and never answers
    assert pool.state_dicts() == {1: {"generator": 5}}
    assert waited == [10.0]


class Asked:
    """A controller that draws 0, 1, 2, ... and remembers for whom."""

    def __init__(self) -> None:
        self.requests: list[list[int]] = []
        self._drawn = 0

    def __call__(self, envs: list[int]) -> list[Index]:
        self.requests.append(envs)
        self._drawn += len(envs)
        return [(float(n), 0.0, 0.0) for n in range(self._drawn - len(envs), self._drawn)]


def test_indices_are_drawn_ahead_as_many_as_the_window_before_took() -> None:
    from gdi.runtime.ray.actor_worker import IndexPrefetcher

    ask = Asked()
    indices = IndexPrefetcher(ask, slots=1, ahead=True)
    indices.begin_window()
    got = [*indices.propose([0, 1, 2]), *indices.propose([1]), *indices.propose([2])]
    assert ask.requests == [[0, 0, 0], [0], [0]]  # the first window knows nothing yet
    indices.begin_window()
    got += [*indices.propose([0]), *indices.propose([1, 2]), *indices.propose([0])]
    assert ask.requests[3:] == [[0] * 5]  # 5 in the window before, 4 used
    assert [index[0] for index in got] == [0, 1, 2, 3, 4, 5, 6, 7, 8]  # each is used once, in order
    indices.begin_window()
    assert indices.propose([0])[0][0] == 10  # not 9: it was drawn a window ago
    assert ask.requests[4:] == [[0] * 4]


def test_every_environment_keeps_its_own_controller() -> None:
    from gdi.runtime.ray.actor_worker import IndexPrefetcher

    ask = Asked()
    indices = IndexPrefetcher(ask, slots=8, ahead=True)
    indices.begin_window()
    indices.propose([4, 5])
    indices.propose([4])
    indices.begin_window()
    first, second = indices.propose([5])[0], indices.propose([4, 4])
    # Nothing is drawn ahead: a slot may stand for one environment's place in a fixed order.
    assert ask.requests == [[4, 5], [4], [5], [4, 4]]
    assert [first[0], *(index[0] for index in second)] == [3, 4, 5]


def test_without_drawing_ahead_every_index_is_drawn_when_it_is_needed() -> None:
    from gdi.runtime.ray.actor_worker import IndexPrefetcher

    ask = Asked()
    indices = IndexPrefetcher(ask, slots=1, ahead=False)
    for _ in range(2):
        indices.begin_window()
        indices.propose([0, 1])
        indices.propose([1])
    assert ask.requests == [[0, 0], [0], [0, 0], [0]]
