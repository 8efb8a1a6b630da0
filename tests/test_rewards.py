"""The two reward shapings of the hyperparameter table, at points that show each of their parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gdi.rewards import log_shape, no_shape, root_shape, shape_rewards


def at(function, *rewards):
    return function(torch.tensor(rewards, dtype=torch.float64)).tolist()


def test_log_shape_at_chosen_points():
    # log(|r| + 1) * (2 if r >= 0 else -1)
    got = at(log_shape, 0.0, 1.0, -1.0, math.e - 1, 1 - math.e, 99.0, -99.0)
    want = [0.0, 2 * math.log(2), -math.log(2), 2.0, -1.0, 2 * math.log(100), -math.log(100)]
    assert got == pytest.approx(want, rel=1e-14)


def test_a_gain_counts_twice_a_loss():
    for size in (1e-6, 0.5, 3.0, 1e5):
        gain, loss = at(log_shape, size, -size)
        assert gain == pytest.approx(-2 * loss, rel=1e-14)


def test_root_shape_at_chosen_points():
    # sign(r) ((|r| + 1)^0.25 - 1) + 0.001 r; 16^0.25 = 2, 81^0.25 = 3, 10000^0.25 = 10
    got = at(root_shape, 0.0, 15.0, -15.0, 80.0, -80.0, 9999.0)
    want = [0.0, 1 + 0.015, -1 - 0.015, 2 + 0.08, -2 - 0.08, 9 + 9.999]
    assert got == pytest.approx(want, rel=1e-13)


def test_root_shape_is_odd_and_log_shape_is_not():
    rewards = torch.linspace(0.1, 50, 77, dtype=torch.float64)
    torch.testing.assert_close(root_shape(-rewards), -root_shape(rewards))
    assert (log_shape(-rewards) + log_shape(rewards) > 0).all()


@pytest.mark.parametrize("shape", [log_shape, root_shape, no_shape])
def test_shapes_are_continuous_increasing_and_keep_zero(shape):
    rewards = torch.linspace(-3, 3, 6001, dtype=torch.float64)  # steps of 0.001
    shaped = shape(rewards)
    assert (shaped.diff() > 0).all()
    assert shaped.diff().max() < 0.0021  # the steepest slope is 2, of the log shape right of 0
    assert at(shape, 0.0) == [0.0]
    tiny = torch.tensor([-1e-12, 1e-12], dtype=torch.float64)
    assert shape(tiny).abs().max() < 1e-11


def test_slopes_at_zero():
    # log: 2 from the right, 1 from the left. root: 1/4 + 0.001 on both sides.
    h = 1e-7
    right, left = at(log_shape, h, -h)
    assert right / h == pytest.approx(2, rel=1e-6)
    assert left / -h == pytest.approx(1, rel=1e-6)
    right, left = at(root_shape, h, -h)
    assert right / h == pytest.approx(0.251, rel=1e-6)
    assert left / -h == pytest.approx(0.251, rel=1e-6)


def test_small_rewards_keep_their_size_in_single_precision():
    # log(1 + 1e-5) = 1e-5 - 5e-11; float32's 1 + 1e-5 alone would be wrong by 0.1 %.
    got = log_shape(torch.tensor([1e-5, -1e-5], dtype=torch.float32))
    assert got.dtype == torch.float32
    assert got.tolist() == pytest.approx([2e-5 - 1e-10, -(1e-5 - 5e-11)], rel=1e-5)


def test_the_whole_formula_on_a_grid():
    rewards = np.linspace(-1000, 1000, 401)
    log_want, root_want = [], []
    for r in rewards:
        log_want.append(math.log(abs(r) + 1.0) * (2 * (r >= 0) - 1 * (r < 0)))
        root_want.append(np.sign(r) * ((abs(r) + 1.0) ** 0.25 - 1.0) + 0.001 * r)
    tensor = torch.as_tensor(rewards)
    np.testing.assert_allclose(log_shape(tensor).numpy(), log_want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(root_shape(tensor).numpy(), root_want, rtol=1e-12, atol=1e-14)
    assert torch.equal(no_shape(tensor), tensor)


def test_each_family_sees_its_own_shape_in_the_given_order():
    rewards = torch.tensor([[15.0, -15.0, 0.0]], dtype=torch.float64)
    shaped = shape_rewards(rewards, ("log", "root"), (1.0, 1.0))
    assert shaped.shape == (1, 3, 2)
    assert torch.equal(shaped[..., 0], log_shape(rewards))
    assert torch.equal(shaped[..., 1], root_shape(rewards))
    assert shaped[0, 0].tolist() == pytest.approx([2 * math.log(16), 1.015])
    turned = shape_rewards(rewards, ("root", "log"), (1.0, 1.0))
    assert torch.equal(turned, shaped.flip(-1))
    assert shape_rewards(rewards, ("none",), (1.0,)).shape == (1, 3, 1)
    assert torch.equal(shape_rewards(rewards, ("none",), (1.0,))[..., 0], rewards)
