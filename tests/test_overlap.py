"""The number that says how far two agents' states overlap, on sets whose overlap is arithmetic."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from threadpoolctl import threadpool_limits

from gdi.cli.report import explored_states
from gdi.envs.minatar import BACKGROUND, COLORS
from gdi.errors import UserError
from gdi.report.document import Document, document_json
from gdi.report.pictures import data_url, picture
from gdi.report.sections.explored import choose_exemplars
from gdi.report.states import KeptStates, features, overlap, read_states, same_frames
from gdi.report.tsne import StateMap, map_states
from gdi.types import Array
from helpers import error_line
from run_folders import hand_config, train_line, write_run

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


def test_the_agent_with_more_states_has_no_more_votes() -> None:
    """Half of A's 1,500 states lie among B's 500, so 2/5 of the neighbors there are B's, each with three votes."""
    a = np.concatenate([uniform(0, 1, 1, 750), uniform(5, 6, 2, 750)])
    for_b = 1 - 0.6**5 - 5 * 0.4 * 0.6**4  # two of five neighbors are enough for B
    expected = (for_b / 2 + (1 - for_b)) / 2  # 0.334; with equal votes it were 0.42
    _, error, _ = overlap_of(a, uniform(0, 1, 3, 500))
    assert abs(error - expected) < 0.035


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
    """At one place are 100 states of A and 800 of B, all equally near: neighbors in the order of the rows are A's."""
    a = np.concatenate([np.zeros((100, 2)), uniform(5, 6, 1, 800)])
    b = np.concatenate([np.zeros((800, 2)), uniform(-6, -5, 2, 100)])
    _, error, _ = overlap_of(a, b)
    assert error == pytest.approx((100 / 900 + 0) / 2)  # the other way around it were 800 / 900 / 2


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


# The map and its section


def write_states(folder: Path, low: float, seed: int, count: int = 20) -> None:
    """Write three stages of MinAtar-like states; the share of pixels that are on tells the runs apart."""
    rng = np.random.default_rng(seed)
    (folder / "states").mkdir(parents=True, exist_ok=True)
    for stage in (1, 2, 3):
        np.savez_compressed(
            folder / "states" / f"stage-{stage}.npz",
            steps=np.array([1, 2]),
            obs=rng.random((count, 10, 10, 4)) < low,
            value=np.full(count, float(stage), np.float32),
            index=np.tile(np.float32([1.5, 2.5, 0.25]), (count, 1)),
            episode=np.stack([np.full(count, seed), np.arange(count), np.full(count, stage)], -1),
            episode_return=np.where(np.arange(count) % 2, 10.0 * stage, np.nan),
        )


@pytest.fixture
def _one_thread() -> Iterator[None]:
    """Give t-SNE one thread. On a busy machine several would mostly wait for each other, which takes cores as well."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def two_runs(_one_thread: None, tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, low, preset in zip(folders, (0.1, 0.9), ("gdi-i3", "boltzmann"), strict=True):
        write_run(folder, [train_line(1000)], hand_config(preset))
        write_states(folder, low, seed=int(10 * low))
    return folders


def test_the_page_has_the_map_the_numbers_and_a_frame_for_each_point(two_runs: list[Path]) -> None:
    section = explored_states(two_runs)
    tree = json.loads(document_json(Document("x", (section,))))
    said, numbers, figure, note = tree["sections"][0]["blocks"]
    assert "an error of 0.000 [0.000, 0.000]" in said["text"]  # 0.1 and 0.9 of the pixels share no state
    assert [row[0] for row in numbers["rows"]] == ["early", "middle", "later", "all"]
    # The returns of half the episodes are known: 10, 20 and 30 by stage.
    assert [row[2][0] for row in numbers["rows"]] == ["10.00", "20.00", "30.00", "20.00"]
    traces = figure["views"][""]["data"]
    points = [trace for trace in traces if trace["type"] == "scatter"]
    assert [trace["name"] for trace in points] == [
        f"{stage} stage of {agent}" for stage in ("early", "middle", "later") for agent in ("gdi-i3", "boltzmann")
    ]
    custom = [tree["arrays"][trace["customdata"]["array"]] for trace in points]
    assert all(len(rows) == 20 for rows in custom)
    assert custom[0][0][1:] == ["1", "unknown", "1/τ1 1.5  1/τ2 2.5  ε 0.25"]
    assert {row[0] for rows in custom for row in rows} <= set(range(len(figure["frames"])))
    assert all(frame.startswith("data:image/png;base64,") for frame in figure["frames"])
    assert "t-SNE of 120 states with perplexity 30 and seed 0" in note["text"]


def test_the_map_is_the_same_each_time(two_runs: list[Path]) -> None:
    kept = [read_states(folder) for folder in two_runs]
    one, two = map_states(*kept), map_states(*kept)
    np.testing.assert_array_equal(one.place, two.place)
    assert one.overlaps == two.overlaps


def test_a_square_has_the_state_at_its_center_as_exemplar() -> None:
    # 12 × 12 squares of side 1: the points lie in squares (0, 0), (0, 0), (11, 11) and (5, 0).
    place = np.array([[0.0, 0.0], [0.5, 0.5], [12.0, 12.0], [5.4, 0.5]])
    nothing = np.zeros(4, int)
    exemplars, frame_of = choose_exemplars(StateMap(nothing, nothing, nothing, place, (), 1, 1.0))
    assert sorted(exemplars.tolist()) == [1, 2, 3]
    assert exemplars[frame_of].tolist() == [1, 1, 2, 3]


def test_the_last_channel_that_is_on_is_seen() -> None:
    obs = np.zeros((10, 10, 4), bool)
    obs[2, 3, [0, 2]] = True
    image = picture(obs)
    assert image is not None
    assert image[2, 3].tolist() == COLORS[2].tolist()
    assert image[0, 0].tolist() == BACKGROUND.tolist()


def test_gray_and_color_images_are_shown_as_they_are_and_vectors_are_not() -> None:
    gray = picture(np.full((84, 84), 7, np.uint8))
    assert gray is not None
    assert (gray == 7).all()
    assert gray.shape == (84, 84, 3)
    color = picture(np.arange(27, dtype=np.uint8).reshape(3, 3, 3))
    assert color is not None
    assert color[1, 2].tolist() == [15, 16, 17]
    assert picture(np.zeros(4, np.float32)) is None


def test_a_picture_is_a_png_file_enlarged_by_a_whole_number() -> None:
    url = data_url(np.full((10, 10, 3), 9, np.uint8))
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))
    assert image.shape == (80, 80, 3)  # 84 // 10 is 8
    assert (image == 9).all()


def test_tsne_of_other_than_two_runs_is_one_line(two_runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    said = error_line(["report", "--tsne", str(two_runs[0])], capsys)
    assert said == "gdi: error: --tsne compares two runs: name two run folders.\n"
    (two_runs[1] / "states" / "stage-3.npz").unlink()
    said = error_line(["report", "--tsne", *map(str, two_runs)], capsys)
    assert "stage-3.npz does not exist: let the run reach its last third" in said
