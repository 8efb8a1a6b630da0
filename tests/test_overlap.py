"""The number that says how far two agents' states overlap, on sets whose overlap is arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gdi.errors import UserError
from gdi.report.states import KeptStates, features, overlap, read_states, same_frames
from gdi.types import Array

COUNT = 900


def uniform(low: float, high: float, seed: int, count: int = COUNT) -> Array:
    return np.random.default_rng(seed).uniform(low, high, (count, 2))


def overlap_of(a: Array, b: Array, episodes_of: int = 1) -> tuple[float, float, float]:
    """The overlap of two sets of points, where each episode has ``episodes_of`` of them in a row."""
    agent = np.repeat([0, 1], [len(a), len(b)])
    episode = np.arange(len(agent)) // episodes_of
    found = overlap(np.concatenate([a, b]), agent, episode, np.random.default_rng(0))
    return found.low, found.error, found.high


def test_the_same_states_have_an_error_of_one_half() -> None:
    low, error, high = overlap_of(uniform(0, 1, 1), uniform(0, 1, 2))
    assert low < 0.5 < high
    assert high - low < 0.1  # 1,800 states: 4 · √(1/4 / 1800) is 0.047
    assert abs(error - 0.5) < 0.05


def test_states_that_share_nothing_have_an_error_of_zero() -> None:
    assert overlap_of(uniform(0, 1, 1), uniform(5, 6, 2)) == (0.0, 0.0, 0.0)


def test_a_half_shared_region_has_the_error_of_its_densities() -> None:
    """B lies in the left square. Of A a quarter lies there as well, so a neighbor there is B with 4/5."""
    a = np.concatenate([uniform(0, 1, 1, 300), uniform(5, 6, 2, 900)])
    b = uniform(0, 1, 3, 1200)
    # Five neighbors with p = 4/5 for B: most are of A with 1·0.2⁵ + 5·0.2⁴·0.8 + 10·0.2³·0.8² = 0.058.
    most_are_a = 0.2**5 + 5 * 0.2**4 * 0.8 + 10 * 0.2**3 * 0.8**2
    expected = (0.25 * (1 - most_are_a) + most_are_a) / 2  # the mean of A's error and B's error
    low, error, high = overlap_of(a, b)
    assert low < expected < high
    assert abs(error - expected) < 0.03


def test_the_number_of_states_of_an_agent_does_not_matter() -> None:
    low, _, high = overlap_of(uniform(0, 1, 1, 1500), uniform(0, 1, 2, 500))
    assert low - 0.03 < 0.5 < high + 0.03


def test_neighbors_of_the_same_episode_do_not_count() -> None:
    """Each episode stays at one place, so its own states would always tell the agent."""
    places = uniform(0, 1, 1, 180)
    points = np.repeat(places, 10, axis=0)
    a, b = points[:900], points[900:]
    _, error, _ = overlap_of(a, b, episodes_of=10)
    assert error > 0.4
    _, naive, _ = overlap_of(a, b, episodes_of=1)
    assert naive == 0.0


def test_the_interval_of_long_episodes_is_wider() -> None:
    low, _, high = overlap_of(uniform(0, 1, 1), uniform(0, 1, 2))
    places = np.repeat(uniform(0, 1, 3, 36), 50, axis=0)
    wide = overlap_of(places[:900], places[900:], episodes_of=50)
    assert wide[2] - wide[0] > 3 * (high - low)


def test_ties_are_broken_at_random() -> None:
    low, error, high = overlap_of(np.zeros((COUNT, 2)), np.zeros((COUNT, 2)))
    assert abs(error - 0.5) < 0.05
    assert low <= error <= high


def kept(obs: Array) -> KeptStates:
    nothing = np.zeros(len(obs))
    return KeptStates(obs, nothing.astype(int), nothing, nothing[:, None], nothing.astype(int), nothing)


def test_images_are_compared_at_the_smaller_size() -> None:
    one, two = same_frames(kept(np.full((2, 84, 84), 4, np.uint8)), kept(np.full((3, 42, 42), 4, np.uint8)))
    assert one.shape == (2, 42, 42)
    assert two.shape == (3, 42, 42)
    assert (features(one) == np.float32(4 / 255)).all()


def test_different_observations_are_one_line() -> None:
    with pytest.raises(UserError, match=r"different things, 4 float32 and 10×10×4 bool: compare two runs of one env"):
        same_frames(kept(np.zeros((2, 4), np.float32)), kept(np.zeros((2, 10, 10, 4), bool)))


def test_columns_of_vectors_have_one_spread() -> None:
    rows = features(np.array([[0, 1000, 3], [2, 3000, 3]], np.float32))
    assert rows.tolist() == [[0, 1, 3], [2, 3, 3]]  # halves of the ranges 2 and 2000 are the spreads; a constant stays


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 damaged", b"\x93NUMPY"])
def test_states_that_cannot_be_read_are_one_line(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "states").mkdir()
        (tmp_path / "states" / "stage-1.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"stage-1\.npz (does not exist: .*--run\.states-per-stage|cannot be read: )"):
        read_states(tmp_path)
