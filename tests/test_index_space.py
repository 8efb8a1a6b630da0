"""Λ: blocks, borders and the two coordinates of 1/τ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdi.config import AxisConfig, GDISpace, validate
from gdi.errors import UserError
from gdi.index_space import make_index_space
from gdi.presets import make_config

RANDOM_POINTS = settings(derandomize=True, deadline=None, max_examples=60, database=None)


def only(axis: AxisConfig):
    """The one searched axis of a space in which the others are fixed."""
    held = AxisConfig(search=False)
    space = make_index_space(GDISpace(inverse_tau_1=axis, inverse_tau_2=held, epsilon=held))
    assert len(space.axes) == 1
    return space.axes[0]


LOG = AxisConfig(coordinate="log")
EPSILON = AxisConfig(high=1.0, block_width=0.1)


def test_the_papers_space():
    space = make_index_space(GDISpace())
    assert [axis.name for axis in space.axes] == ["inverse_tau_1", "inverse_tau_2", "epsilon"]
    assert [axis.num_blocks for axis in space.axes] == [50, 50, 10]
    assert [(axis.low, axis.high) for axis in space.axes] == [(0.0, 50.0), (0.0, 50.0), (0.0, 1.0)]
    assert [axis.block_width for axis in space.axes] == pytest.approx([1.0, 1.0, 0.1])
    assert space.degrees_of_freedom == 3
    assert space.base == (1.0, 0.0, 1.0)  # the table's Fixed Selection


def test_borders_belong_to_the_block_on_their_right():
    epsilon = only(EPSILON)
    assert math.floor(0.3 / 0.1) == 2  # what naive arithmetic says
    assert epsilon.block_of(0.3) == 3
    for border in range(10):
        assert epsilon.block_of(border / 10) == border
        assert epsilon.block_of(border * 0.1) == border
        assert epsilon.block_of(border / 10 + 0.0999) == border
        assert epsilon.block_of(border / 10 + 0.05) == border
    inverse_tau = only(AxisConfig())
    for border in range(50):
        assert inverse_tau.block_of(float(border)) == border
        assert inverse_tau.block_of(border + 0.999) == border


def test_the_right_end_is_in_the_last_block_and_outside_is_clipped():
    epsilon, inverse_tau = only(EPSILON), only(AxisConfig())
    assert epsilon.block_of(1.0) == 9
    assert inverse_tau.block_of(50.0) == 49
    assert [epsilon.block_of(x) for x in (-3.0, 1.0001, 7.0)] == [0, 9, 9]
    assert [inverse_tau.block_of(x) for x in (-3.0, 50.0001, 1e9)] == [0, 49, 49]


def test_a_range_that_does_not_begin_at_zero():
    axis = only(AxisConfig(low=10.0, high=20.0, block_width=2.0))
    assert axis.num_blocks == 5
    assert [axis.block_of(x) for x in (10.0, 11.9, 12.0, 15.0, 18.0, 20.0, 0.0)] == [0, 0, 1, 2, 4, 4, 0]


def test_log_coordinate_has_as_many_blocks_equal_in_log_one_plus_u():
    axis = only(LOG)
    assert axis.num_blocks == only(AxisConfig()).num_blocks == 50
    assert (axis.low, axis.high) == pytest.approx((0.0, math.log(51)))
    assert axis.block_width == pytest.approx(math.log(51) / 50)  # 0.0786
    for border in range(50):
        assert axis.block_of(border * math.log(51) / 50) == border
    # Finer near 0: u = 1 is log 2 / 0.0786 = 8.8 blocks from the left, not 1; u = 25 is log 26 / 0.0786 = 41.4.
    assert axis.block_of(axis.to_coordinate(1.0)) == 8
    assert axis.block_of(axis.to_coordinate(25.0)) == 41
    assert axis.block_of(axis.to_coordinate(50.0)) == 49


def test_coordinates_at_chosen_points():
    linear, log = only(AxisConfig()), only(LOG)
    for value in (0.0, 0.25, 7.0, 50.0):
        assert linear.to_coordinate(value) == value
        assert linear.to_value(value) == value
    # x = log(1 + 1/tau), 1/tau = exp(x) - 1
    assert log.to_coordinate(0.0) == 0.0
    assert log.to_value(0.0) == 0.0
    assert log.to_coordinate(math.e - 1) == pytest.approx(1.0)
    assert log.to_value(2.0) == pytest.approx(math.e**2 - 1)
    assert log.to_value(math.log(51)) == pytest.approx(50.0)


@RANDOM_POINTS
@given(st.floats(0, 50), st.sampled_from([AxisConfig(), LOG]))
def test_value_to_coordinate_and_back(value, config):
    axis = only(config)
    assert axis.to_value(axis.to_coordinate(value)) == pytest.approx(value, rel=1e-12, abs=1e-12)


@RANDOM_POINTS
@given(st.integers(0, 49), st.integers(0, 2**31), st.sampled_from([AxisConfig(), LOG]))
def test_a_sample_survives_the_way_to_the_actor_and_back(block, seed, config):
    axis = only(config)
    x = axis.sample_in_block(block, np.random.default_rng(seed))
    assert axis.low + block * axis.block_width <= x <= axis.low + (block + 1) * axis.block_width
    assert axis.block_of(x) == block
    assert axis.block_of(axis.to_coordinate(axis.to_value(x))) == block


def test_samples_are_uniform_in_their_block():
    axis = only(AxisConfig(low=10.0, high=20.0, block_width=2.0))
    rng = np.random.default_rng(0)
    samples = np.sort([axis.sample_in_block(3, rng) for _ in range(4000)])
    assert 16.0 <= samples[0] <= 16.01
    assert 17.99 <= samples[-1] <= 18.0
    gap = np.abs((samples - 16.0) / 2.0 - (np.arange(4000) + 0.5) / 4000).max()
    assert gap < 1.95 / math.sqrt(4000)  # Kolmogorov-Smirnov, chance 0.001


def test_index_and_coordinates_are_inverse():
    space = make_index_space(GDISpace(inverse_tau_1=LOG))
    index = space.to_index(np.array([math.log(3), 7.5, 0.25]))
    assert tuple(index) == pytest.approx((2.0, 7.5, 0.25))
    np.testing.assert_allclose(space.to_coordinates(index), [math.log(3), 7.5, 0.25])


def test_axes_that_are_not_searched_stay_at_their_fixed_value():
    config = GDISpace(
        inverse_tau_1=AxisConfig(search=False, fixed_value=3.0),
        inverse_tau_2=AxisConfig(search=True),
        epsilon=AxisConfig(search=False, high=1.0, block_width=0.1, fixed_value=0.5),
    )
    space = make_index_space(config)
    assert [axis.name for axis in space.axes] == ["inverse_tau_2"]
    assert space.degrees_of_freedom == 1
    assert space.to_index(np.array([12.5])) == (3.0, 12.5, 0.5)
    np.testing.assert_allclose(space.to_coordinates((3.0, 12.5, 0.5)), [12.5])


@dataclass(frozen=True)
class OwnSpace:
    """A user's own knobs, one with a limit."""

    limits: ClassVar[dict[str, float]] = {"share": 1.0}

    speed: AxisConfig = AxisConfig(search=False, fixed_value=2.0)
    share: AxisConfig = AxisConfig(high=1.0, block_width=0.25)


@dataclass(frozen=True)
class EmptySpace:
    """No knob at all."""


def test_a_users_space_needs_only_axes():
    space = make_index_space(OwnSpace())
    assert space.names == space.labels == ("speed", "share")
    assert [axis.num_blocks for axis in space.axes] == [4]
    assert space.to_index(np.array([0.5])) == (2.0, 0.5)
    assert space.text((2.0, 0.5)) == "speed 2  share 0.5"


def test_a_space_without_knobs_has_one_empty_index():
    space = make_index_space(EmptySpace())
    assert space.degrees_of_freedom == 0
    assert space.to_index(np.zeros(0)) == space.base == ()


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((1.0,), "has 2 numbers, not 1"),
        ((1.0, 1.5), "share must be in"),
        ((-1.0, 0.5), "speed must be 0 or more"),
        ((math.inf, 0.5), "speed must be 0 or more"),
        ((math.nan, 0.5), "speed must be 0 or more"),
    ],
)
def test_an_index_outside_the_space_is_refused(index, words):
    with pytest.raises(UserError, match=words):
        make_index_space(OwnSpace()).check(index)
    assert make_index_space(OwnSpace()).check((7.0, 1.0)) == (7.0, 1.0)


def test_a_space_must_have_the_knobs_that_the_learner_reads():
    config = make_config("gdi-i3", "CartPole-v1")
    with pytest.raises(UserError, match="use an index space with the learner's knobs"):
        validate(replace(config, index_space=OwnSpace()))


def test_an_axis_beyond_its_limit_is_refused():
    config = make_config("gdi-i3", "CartPole-v1")
    space = replace(config.index_space, epsilon=AxisConfig(high=1.5, block_width=0.1))
    with pytest.raises(UserError, match=r"--index-space\.epsilon must be at most 1"):
        validate(replace(config, index_space=space))
