"""V-trace and ReTrace against the paper's sums, written out term by term (Equ: vtrace, Equ: retrace)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gdi.returns import policy_gradient_advantage, retrace, sarsa_next_value, vtrace

RANDOM_SHAPES = settings(derandomize=True, deadline=None, max_examples=40, database=None)
TRAILING = st.sampled_from([(), (1,), (3,), (2, 2)])
CLIPS = st.sampled_from([0.0, 0.3, 1.0, 1.05, 2.0, 1e9])


# The literal sums. gamma^k is the product of the k discounts passed on the way, so a terminal's 0 ends the sum.


def vtrace_sum(values, reward, discount, ratio, rho_bar, c_bar):
    """V(s_t) + sum_{k>=0} gamma^k c_[t:t+k-1] rho_{t+k} delta_{t+k}, for t < T; the bootstrap is added last."""
    steps = len(reward)
    targets = []
    for t in range(steps):
        total = np.array(values[t], dtype=np.float64)
        for k in range(steps - t):
            weight = np.ones_like(total)
            for i in range(k):  # i = t .. t+k-1: discount and c of every step before t+k
                weight = weight * discount[t + i] * np.minimum(ratio[t + i], c_bar)
            rho = np.minimum(ratio[t + k], rho_bar)
            delta = reward[t + k] + discount[t + k] * values[t + k + 1] - values[t + k]
            total = total + weight * rho * delta
        targets.append(total)
    return np.stack([*targets, values[steps]])


def retrace_sum(q_taken, next_value, reward, discount, ratio, c_bar):
    """Q(s_t,a_t) + sum_{k>=0} gamma^k c_[t+1:t+k] delta_{t+k}."""
    steps = len(reward)
    targets = []
    for t in range(steps):
        total = np.array(q_taken[t], dtype=np.float64)
        for k in range(steps - t):
            weight = np.ones_like(total)
            for i in range(k):  # gamma^k: the discounts of t .. t+k-1
                weight = weight * discount[t + i]
            for i in range(1, k + 1):  # c_[t+1:t+k]: the ratios of t+1 .. t+k
                weight = weight * np.minimum(ratio[t + i], c_bar)
            total = total + weight * (reward[t + k] + discount[t + k] * next_value[t + k] - q_taken[t + k])
        targets.append(total)
    return np.stack(targets)


def window(seed, steps, trailing, terminal_chance=0.2, reset_chance=0.2):
    """Random values, rewards, and ratios from 0.05 to 3 that straddle every clip used here, with ends inside."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(steps + 1, *trailing))
    reward = rng.normal(size=(steps, *trailing))
    discount = np.where(rng.random((steps, *trailing)) < terminal_chance, 0.0, 0.9)
    ratio = rng.uniform(0.05, 3.0, size=(steps, *trailing))
    ratio = np.where(rng.random(ratio.shape) < reset_chance, 0.0, ratio)
    return values, reward, discount, ratio


def tensors(*arrays, dtype=torch.float64):
    return tuple(torch.as_tensor(np.asarray(a), dtype=dtype) for a in arrays)


# --- V-trace --------------------------------------------------------------------------------------


@RANDOM_SHAPES
@given(st.integers(0, 2**31), st.integers(1, 9), TRAILING, CLIPS, CLIPS)
def test_vtrace_is_the_papers_sum(seed, steps, trailing, rho_bar, c_bar):
    values, reward, discount, ratio = window(seed, steps, trailing)
    got = vtrace(*tensors(values, reward, discount, ratio), rho_bar=rho_bar, c_bar=c_bar)
    assert got.shape == (steps + 1, *trailing)
    want = vtrace_sum(values, reward, discount, ratio, rho_bar, c_bar)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-11, atol=1e-11)


def test_vtrace_in_single_precision_over_eighty_steps():
    values, reward, discount, ratio = window(3, 80, (4,), terminal_chance=0.02, reset_chance=0.02)
    discount = np.where(discount > 0, 0.997, 0.0)
    got = vtrace(*tensors(values, reward, discount, ratio, dtype=torch.float32), rho_bar=1.05, c_bar=1.05)
    assert got.dtype == torch.float32
    want = vtrace_sum(values, reward, discount, ratio, 1.05, 1.05)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)


def test_vtrace_two_steps_by_hand():
    # gamma 0.5; ratios 3 and 0.5; rho_bar 2, c_bar 1.5: rho = (2, 0.5), c = (1.5, 0.5).
    # delta_0 = 1 + 0.5*20 - 10 = 1;  delta_1 = 2 + 0.5*40 - 20 = 2.
    # v_1 = 20 + 0.5*2 = 21;  v_0 = 10 + 2*1 + 0.5*1.5*0.5*2 = 12.75;  v_2 is the bootstrap.
    got = vtrace(
        *tensors([10.0, 20.0, 40.0], [1.0, 2.0], [0.5, 0.5], [3.0, 0.5]),
        rho_bar=2.0,
        c_bar=1.5,
    )
    assert got.tolist() == [12.75, 21.0, 40.0]


def test_vtrace_weighs_delta_by_rho_bar_and_carries_by_c_bar():
    # One step: only rho_bar acts. v_0 = V_0 + min(5, rho_bar) * (r + gamma V_1 - V_0) = 1 + rho_bar * 2.
    one_step = tensors([1.0, 2.0], [2.0], [0.5], [5.0])
    assert vtrace(*one_step, rho_bar=3.0, c_bar=0.25)[0].item() == 1 + 3 * 2
    # Two steps, delta_0 = 0: v_0 - V_0 = gamma * c_0 * rho_1 * delta_1 = 0.5 * c_bar * 3 * 4.
    two_steps = tensors([0.0, 0.0, 0.0], [0.0, 4.0], [0.5, 0.5], [5.0, 5.0])
    assert vtrace(*two_steps, rho_bar=3.0, c_bar=0.25)[0].item() == 0.5 * 0.25 * 3 * 4


@pytest.mark.parametrize(("rho_bar", "c_bar"), [(1.0, 1.0), (1.05, 1.05), (5.0, 2.0)])
def test_vtrace_on_policy_is_the_n_step_return_with_bootstrap(rho_bar, c_bar):
    values, reward, _, _ = window(0, 6, ())
    gamma = 0.9
    got = vtrace(
        *tensors(values, reward, np.full(6, gamma), np.ones(6)),
        rho_bar=rho_bar,
        c_bar=c_bar,
    )
    for t in range(6):
        n = 6 - t
        n_step = sum(gamma**k * reward[t + k] for k in range(n)) + gamma**n * values[6]
        assert got[t].item() == pytest.approx(n_step, rel=1e-12)


def test_vtrace_with_c_bar_zero_looks_one_step_ahead():
    values, reward, discount, ratio = window(1, 7, (3,))
    got = vtrace(*tensors(values, reward, discount, ratio), rho_bar=1.3, c_bar=0.0)
    one_step = values[:-1] + np.minimum(ratio, 1.3) * (reward + discount * values[1:] - values[:-1])
    np.testing.assert_allclose(got[:-1].numpy(), one_step, rtol=1e-13)


def test_values_that_satisfy_the_bellman_equation_are_their_own_targets():
    rng = np.random.default_rng(5)
    values, ratio = rng.normal(size=(9, 2)), rng.uniform(0, 3, size=(8, 2))
    reward = values[:-1] - 0.9 * values[1:]
    got = vtrace(*tensors(values, reward, np.full((8, 2), 0.9), ratio), rho_bar=2.0, c_bar=1.0)
    np.testing.assert_allclose(got.numpy(), values, atol=1e-12)


def test_vtrace_nothing_crosses_a_terminal():
    values, reward, discount, ratio = window(2, 8, (2,), terminal_chance=0, reset_chance=0)
    discount[3] = 0.0
    before = vtrace(*tensors(values, reward, discount, ratio), rho_bar=2.0, c_bar=1.5)
    values[4:] = 1e6
    reward[4:] = -1e6
    discount[4:] = 0.5
    ratio[4:] = 7.0
    after = vtrace(*tensors(values, reward, discount, ratio), rho_bar=2.0, c_bar=1.5)
    assert torch.equal(before[:4], after[:4])
    assert not torch.equal(before[4:], after[4:])
    # The terminal step itself: V + rho (r - V), no bootstrap.
    terminal = values[3] + np.minimum(ratio[3], 2.0) * (reward[3] - values[3])
    np.testing.assert_allclose(after[3].numpy(), terminal, rtol=1e-13)


def test_vtrace_a_truncation_bootstraps_on_the_final_observation_and_leaks_nothing():
    # Step 2 is truncated: its discount stays 0.9. Step 3 is the reset (ratio 0) and values[3] is V of the final obs.
    values, reward, discount, ratio = window(4, 8, (2,), terminal_chance=0, reset_chance=0)
    ratio[3] = 0.0
    arguments = {"rho_bar": 1.4, "c_bar": 1.1}
    got = vtrace(*tensors(values, reward, discount, ratio), **arguments)
    # A window that simply ends there, with bootstrap values[3], has the same targets.
    cut = vtrace(*tensors(values[:4], reward[:3], discount[:3], ratio[:3]), **arguments)
    assert torch.equal(got[:4], cut)
    np.testing.assert_array_equal(got[3].numpy(), values[3])

    other = [a.copy() for a in (values, reward, discount, ratio)]
    other[0][4:] = 1e6
    other[1][3:] = -1e6  # the reset's own reward is meaningless too
    other[2][3:] = 0.3
    other[3][4:] = 9.0
    assert torch.equal(vtrace(*tensors(*other), **arguments)[:4], got[:4])

    # Negative controls: V(final obs) does count, and a reset taken for a transition is noticed.
    values[3] += 1.0
    assert not torch.equal(vtrace(*tensors(values, reward, discount, ratio), **arguments)[:3], got[:3])
    values[3] -= 1.0
    ratio[3] = 1.0
    assert not torch.equal(vtrace(*tensors(values, reward, discount, ratio), **arguments)[:3], got[:3])


def test_trailing_axes_do_not_mix():
    values, reward, discount, ratio = window(6, 5, (3, 2))
    whole = vtrace(*tensors(values, reward, discount, ratio), rho_bar=1.2, c_bar=0.8)
    for i in range(3):
        for j in range(2):
            column = [a[:, i, j] for a in (values, reward, discount, ratio)]
            alone = vtrace(*tensors(*column), rho_bar=1.2, c_bar=0.8)
            np.testing.assert_allclose(whole[:, i, j].numpy(), alone.numpy(), rtol=1e-14)


def test_inputs_are_left_alone():
    values, reward, discount, ratio = tensors(*window(7, 5, (2,)))
    kept = [a.clone() for a in (values, reward, discount, ratio)]
    targets = vtrace(values, reward, discount, ratio, rho_bar=1.0, c_bar=1.0)
    retrace(values[:-1], values[1:], reward, discount, ratio, c_bar=1.0)
    policy_gradient_advantage(values, targets, reward, discount, ratio, rho_bar=1.0)
    sarsa_next_value(values[:-1], values, ratio > 0)
    assert all(torch.equal(a, b) for a, b in zip((values, reward, discount, ratio), kept, strict=True))


# --- ReTrace --------------------------------------------------------------------------------------


@RANDOM_SHAPES
@given(st.integers(0, 2**31), st.integers(1, 9), TRAILING, CLIPS)
def test_retrace_is_the_papers_sum(seed, steps, trailing, c_bar):
    values, reward, discount, ratio = window(seed, steps, trailing)
    q_taken = np.random.default_rng(seed + 1).normal(size=(steps, *trailing))
    got = retrace(*tensors(q_taken, values[1:], reward, discount, ratio), c_bar=c_bar)
    assert got.shape == (steps, *trailing)
    want = retrace_sum(q_taken, values[1:], reward, discount, ratio, c_bar)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-11, atol=1e-11)


def test_retrace_two_steps_by_hand():
    # gamma 0.5, c_bar 1.5, ratios (9, 3): c_0 does not appear, c_1 = 1.5.
    # delta_0 = 1 + 0.5*4 - 10 = -7;  delta_1 = 2 + 0.5*8 - 20 = -14.
    # q_1 = 20 - 14 = 6;  q_0 = 10 - 7 + 0.5*1.5*(-14) = -7.5.
    got = retrace(*tensors([10.0, 20.0], [4.0, 8.0], [1.0, 2.0], [0.5, 0.5], [9.0, 3.0]), c_bar=1.5)
    assert got.tolist() == [-7.5, 6.0]


def test_retrace_does_not_weigh_a_step_by_its_own_ratio():
    values, reward, discount, ratio = window(8, 5, (2,), terminal_chance=0, reset_chance=0)
    first = retrace(*tensors(values[:-1], values[1:], reward, discount, ratio), c_bar=1.2)
    ratio[0] = 0.123
    assert torch.equal(retrace(*tensors(values[:-1], values[1:], reward, discount, ratio), c_bar=1.2), first)
    ratio[1] = 0.123
    second = retrace(*tensors(values[:-1], values[1:], reward, discount, ratio), c_bar=1.2)
    assert not torch.equal(second[0], first[0])
    assert torch.equal(second[1:], first[1:])


def test_retrace_with_c_bar_zero_looks_one_step_ahead():
    values, reward, discount, ratio = window(9, 6, (2,))
    got = retrace(*tensors(values[:-1], values[1:], reward, discount, ratio), c_bar=0.0)
    np.testing.assert_allclose(got.numpy(), reward + discount * values[1:], rtol=1e-12, atol=1e-14)


def test_retrace_on_policy_in_sarsa_form_is_the_n_step_return_with_bootstrap():
    values, reward, _, _ = window(10, 6, ())
    q_taken = np.random.default_rng(11).normal(size=6)
    gamma = 0.9
    q, v = tensors(q_taken, values)
    next_value = sarsa_next_value(q, v, torch.ones(6, dtype=torch.bool))
    got = retrace(q, next_value, *tensors(reward, np.full(6, gamma), np.ones(6)), c_bar=1.0)
    for t in range(6):
        n = 6 - t
        n_step = sum(gamma**k * reward[t + k] for k in range(n)) + gamma**n * values[6]
        assert got[t].item() == pytest.approx(n_step, rel=1e-12)


def test_retrace_nothing_crosses_a_terminal():
    values, reward, discount, ratio = window(12, 8, (2,), terminal_chance=0, reset_chance=0)
    q_taken, next_value = values[:-1].copy(), values[1:].copy()
    discount[3] = 0.0
    before = retrace(*tensors(q_taken, next_value, reward, discount, ratio), c_bar=1.5)
    q_taken[4:] = 1e6
    next_value[3:] = 1e6  # also the terminal step's own next value
    reward[4:] = -1e6
    discount[4:] = 0.5
    ratio[4:] = 7.0
    after = retrace(*tensors(q_taken, next_value, reward, discount, ratio), c_bar=1.5)
    assert torch.equal(before[:4], after[:4])
    assert not torch.equal(before[4:], after[4:])
    np.testing.assert_allclose(after[3].numpy(), reward[3], rtol=1e-12)  # r alone


def test_retrace_a_truncation_bootstraps_on_the_final_observation_and_leaks_nothing():
    values, reward, discount, ratio = window(13, 8, (2,), terminal_chance=0, reset_chance=0)
    q_taken, next_value = np.random.default_rng(1).normal(size=(8, 2)), values[1:].copy()
    ratio[3] = 0.0
    got = retrace(*tensors(q_taken, next_value, reward, discount, ratio), c_bar=1.1)
    cut = retrace(*tensors(q_taken[:3], next_value[:3], reward[:3], discount[:3], ratio[:3]), c_bar=1.1)
    assert torch.equal(got[:3], cut)
    np.testing.assert_allclose(got[2].numpy(), reward[2] + 0.9 * values[3], rtol=1e-12)

    q_taken[3:], next_value[3:], reward[3:], discount[3:], ratio[4:] = 1e6, 1e6, -1e6, 0.3, 9.0
    changed = retrace(*tensors(q_taken, next_value, reward, discount, ratio), c_bar=1.1)
    assert torch.equal(changed[:3], got[:3])
    ratio[3] = 1.0  # negative control: a reset taken for a transition
    leaked = retrace(*tensors(q_taken, next_value, reward, discount, ratio), c_bar=1.1)
    assert not torch.equal(leaked[:3], got[:3])


def test_sarsa_next_value_by_hand():
    q_taken = torch.tensor([1.0, 2.0, 3.0, 4.0])
    values = torch.tensor([10.0, 20.0, 30.0, 40.0, 50.0])
    valid = torch.tensor([True, True, False, True])
    # t=0: step 1 is valid -> Q_1 = 2. t=1: step 2 is a reset -> V_2 = 30. t=2: step 3 valid -> Q_3 = 4. t=3: V_4.
    assert sarsa_next_value(q_taken, values, valid).tolist() == [2.0, 30.0, 4.0, 50.0]
    # valid[0] speaks of step 0, which is nobody's successor.
    valid[0] = False
    assert sarsa_next_value(q_taken, values, valid).tolist() == [2.0, 30.0, 4.0, 50.0]


@RANDOM_SHAPES
@given(st.integers(0, 2**31), st.integers(1, 9), TRAILING, CLIPS)
def test_retrace_in_sarsa_form_is_the_printed_sum(seed, steps, trailing, c_bar):
    """delta^Q_t = r_t + gamma Q(s_{t+1}, a_{t+1}) - Q(s_t, a_t), with V where no action was taken."""
    values, reward, discount, ratio = window(seed, steps, trailing)
    q_taken = np.random.default_rng(seed + 1).normal(size=(steps, *trailing))
    valid = ratio > 0
    printed = np.array(values[1:])
    for t in range(steps - 1):
        printed[t] = np.where(valid[t + 1], q_taken[t + 1], values[t + 1])
    q, v = tensors(q_taken, values)
    next_value = sarsa_next_value(q, v, torch.as_tensor(valid))
    np.testing.assert_array_equal(next_value.numpy(), printed)
    got = retrace(q, next_value, *tensors(reward, discount, ratio), c_bar=c_bar)
    want = retrace_sum(q_taken, printed, reward, discount, ratio, c_bar)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-11, atol=1e-11)


def test_with_one_action_and_no_clip_both_traces_agree():
    # One action: Q = V, pi = mu. Then rho = c = 1 and both sums are the same telescoping one.
    values, reward, discount, _ = window(14, 7, (2,), reset_chance=0)
    ratio = np.ones_like(reward)
    v = vtrace(*tensors(values, reward, discount, ratio), rho_bar=1.05, c_bar=1.05)
    q = retrace(*tensors(values[:-1], values[1:], reward, discount, ratio), c_bar=1.05)
    np.testing.assert_allclose(v[:-1].numpy(), q.numpy(), rtol=1e-12)


# --- The factor of the policy gradient ------------------------------------------------------------


def test_policy_gradient_advantage_by_hand():
    # rho = min((3, 0.5, 0), 2) = (2, 0.5, 0); the middle step terminates.
    # t=0: 2 (1 + 0.5*200 - 10) = 182.  t=1: 0.5 (7 + 0*300 - 20) = -6.5.  t=2 is no transition: 0.
    got = policy_gradient_advantage(
        *tensors([10.0, 20.0, 30.0, 40.0], [100.0, 200.0, 300.0, 400.0], [1.0, 7.0, 5.0]),
        *tensors([0.5, 0.0, 0.5], [3.0, 0.5, 0.0]),
        rho_bar=2.0,
    )
    assert got.tolist() == [182.0, -6.5, 0.0]


@RANDOM_SHAPES
@given(st.integers(0, 2**31), st.integers(1, 7), TRAILING, CLIPS)
def test_policy_gradient_advantage_is_the_printed_factor(seed, steps, trailing, rho_bar):
    values, reward, discount, ratio = window(seed, steps, trailing)
    targets = np.random.default_rng(seed + 2).normal(size=values.shape)
    got = policy_gradient_advantage(*tensors(values, targets, reward, discount, ratio), rho_bar=rho_bar)
    assert got.shape == (steps, *trailing)
    for t in range(steps):
        want = np.minimum(ratio[t], rho_bar) * (reward[t] + discount[t] * targets[t + 1] - values[t])
        np.testing.assert_allclose(got[t].numpy(), want, rtol=1e-13, atol=1e-13)
