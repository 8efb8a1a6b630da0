"""The sentence about what E did, on hand-made logs and on controllers whose returns are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gdi.controller.ensemble import BanditEnsemble
from gdi.index_space import Axis, IndexSpace, make_index_space
from gdi.presets import make_config
from gdi.report.log import AxisBelief
from gdi.report.runs import read_run
from gdi.report.sections.control import summary
from gdi.report.verdicts import Verdict, judge_axis, listed, sentence
from gdi.types import Array, EpisodeEnd
from run_folders import train_line, write_run

AXIS = Axis("x", 0.0, 50.0, 50, logarithmic=False)
LINES = 30


def belief(best: list[int], top: float = 0.5, blocks: int = 50) -> AxisBelief:
    """Return the belief that gives the best block this probability, and the others equal shares of the rest."""
    value = np.eye(blocks)[best]
    probability = np.where(value == 1, top, (1 - top) / (blocks - 1))
    return AxisBelief(np.arange(1.0, len(best) + 1), value, np.ones_like(value), probability)


def test_the_sentence_of_a_run_that_moved(tmp_path) -> None:
    # Block 32 is [32, 33), whose center is 32.5. 1/τ1 jumps with every line, and ε is as likely in every block.
    jumps = np.random.default_rng(0).integers(0, 50, LINES)
    lines = [
        train_line(100 * (i + 1), {"inverse_tau_1": int(jumps[i]), "inverse_tau_2": 32 if i < 15 else 44})
        for i in range(LINES)
    ]
    for line in lines:
        line |= {f"controller/epsilon/block_{name}": [0.1] * 10 for name in ("value", "count", "probability")}
        line |= {"controller/epsilon/top_block_probability": 0.1}
    run = read_run(write_run(tmp_path / "run", lines))
    assert summary(run) == "E stayed undecided about 1/τ1 and ε and moved 1/τ2 from 32.5 to 44.5."


def test_the_sentence_of_a_run_that_swings(tmp_path) -> None:
    # Five lines at block 8, five at block 40, and again: five turns in 30 lines.
    places = [8 if i // 5 % 2 == 0 else 40 for i in range(LINES)]
    lines = [train_line(100 * (i + 1), {"inverse_tau_1": place}) for i, place in enumerate(places)]
    assert summary(read_run(write_run(tmp_path / "run", lines))) == "E swung 1/τ1 between 8.5 and 40.5."


@pytest.mark.parametrize(
    ("best", "top", "expected"),
    [
        ([10] * LINES, 0.5, Verdict("stayed", 10.5, 10.5)),
        # A move by one block is within the width of a block.
        ([10] * 15 + [11] * 15, 0.5, Verdict("stayed", 11.5, 11.5)),
        ([10] * 15 + [12] * 15, 0.5, Verdict("moved", 10.5, 12.5)),
        # The same move, but every block is about as likely: E prefers none.
        ([10] * 15 + [12] * 15, 0.02, Verdict("undecided")),
        # Everywhere at first, then one place.
        ([*range(0, 50, 5), *[30] * 20], 0.5, Verdict("settled", 30.5, 30.5)),
        ([10] * 8, 0.5, Verdict("early")),
    ],
)
def test_what_is_said_of_one_axis(best: list[int], top: float, expected: Verdict) -> None:
    assert judge_axis(AXIS, belief(best, top)) == expected


def test_white_noise_is_never_called_a_move() -> None:
    rng = np.random.default_rng(1)
    found = [judge_axis(AXIS, belief(rng.integers(0, 50, LINES).tolist())).word for _ in range(300)]
    assert "moved" not in found
    assert found.count("undecided") > 0.8 * 300


def test_noise_around_a_place_is_never_called_a_move() -> None:
    rng = np.random.default_rng(2)
    for width in (1, 2, 6):
        best = [np.clip(np.rint(rng.normal(25, width, LINES)), 0, 49).astype(int).tolist() for _ in range(100)]
        words = {judge_axis(AXIS, belief(places)).word for places in best}
        assert "moved" not in words
        assert width > 2 or words == {"stayed"}


def controlled(
    seed: int, episode_return: Callable[[Array, float, np.random.Generator], float]
) -> tuple[IndexSpace, list]:
    """Return the belief about each axis of a real controller: 50 log lines of 80 episodes with these returns."""
    config = make_config("gdi-i3", "MinAtar/Breakout-v0", steps=1000)
    space, rng = make_index_space(config.index_space), np.random.default_rng(seed)
    controller = BanditEnsemble(space, config.controller, rng)
    logged = []
    for line in range(50):
        for _ in range(10):
            found = [
                EpisodeEnd(0, index, episode_return(space.to_coordinates(index), line / 50, rng), 10, False)
                for index in controller.propose(list(range(8)))
            ]
            controller.observe(found, 80)
        logged.append(controller.belief())
    return space, [
        AxisBelief(np.arange(50.0), *(np.array([getattr(line[i], name) for line in logged]) for name in NAMES))
        for i in range(len(space.axes))
    ]


NAMES = ("value", "count", "probability")


def test_a_controller_that_learns_from_noise_is_never_called_a_move() -> None:
    for seed in range(6):
        space, beliefs = controlled(seed, lambda x, time, rng: float(rng.normal()))
        words = [judge_axis(axis, found).word for axis, found in zip(space.axes, beliefs, strict=True)]
        assert "moved" not in words


def test_a_controller_that_follows_a_moving_peak_is_called_a_move() -> None:
    """The positive control: the best 1/τ2 rises from log(1 + u) = 1.5 to 4.5, so from u = 3.5 to 89."""
    for seed in range(3):
        space, beliefs = controlled(seed, lambda x, time, rng: -2 * abs(x[1] - (1.5 + 3 * time)) + float(rng.normal()))
        found = judge_axis(space.axes[1], beliefs[1])
        assert found.word == "moved"
        assert found.start < 20 < 40 < found.end


def test_sentences_join_what_is_equal() -> None:
    same = Verdict("undecided")
    assert sentence(["a", "b", "c"], [same, Verdict("stayed", 2, 3), same]) == (
        "E stayed undecided about a and c and kept b between 2 and 3."
    )
    assert sentence([], []) == ""
    early = Verdict("early")
    assert sentence(["a", "b"], [early, early]) == "The log has too few lines to judge a and b."
    assert sentence(["a", "b"], [early, same]) == ("E stayed undecided about b. The log has too few lines to judge a.")
    assert listed(["a", "b", "c"]) == "a, b and c"
