"""π_λ = ε Softmax(A1 u1) + (1 − ε) Softmax(A2 u2), u = 1/τ, and the centered Q built on it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gdi.algorithms.gdi import centered_q
from gdi.policy import component_log_probs, entropy, family_log_probs, log_probs, sample

RANDOM_SHAPES = settings(derandomize=True, deadline=None, max_examples=40, database=None)


def softmax(row):
    """exp / sum of one row; the largest entry is taken out first, which changes nothing but the range."""
    e = np.exp(np.asarray(row, dtype=np.float64) - np.max(row))
    return e / e.sum()


def mixture(advantage, index):
    """The paper's formula for one state: advantage [F, A], index (u1, u2, eps)."""
    first, second = advantage[0], advantage[-1]  # one family: A1 = A2
    u1, u2, epsilon = index
    return epsilon * softmax(u1 * first) + (1 - epsilon) * softmax(u2 * second)


def mixture_gradients(advantage, index, action):
    """d log pi(action) / d A1 and / d A2 as if they were different variables, by the quotient rule."""
    u1, u2, epsilon = index
    p1, p2 = softmax(u1 * advantage[0]), softmax(u2 * advantage[-1])
    pi = epsilon * p1 + (1 - epsilon) * p2
    hot = np.eye(len(p1))[action]
    return (
        epsilon * p1[action] * u1 * (hot - p1) / pi[action],
        (1 - epsilon) * p2[action] * u2 * (hot - p2) / pi[action],
    )


def double(array, requires_grad=False):
    return torch.tensor(np.asarray(array), dtype=torch.float64, requires_grad=requires_grad)


# --- Values ---------------------------------------------------------------------------------------


@RANDOM_SHAPES
@given(
    st.integers(0, 2**31),
    st.sampled_from([(), (3,), (2, 3)]),
    st.sampled_from([1, 2]),
    st.integers(2, 6),
)
def test_probabilities_are_the_papers_mixture(seed, leading, families, actions):
    rng = np.random.default_rng(seed)
    advantage = rng.normal(size=(*leading, families, actions)) * 2
    index = np.stack([rng.uniform(0, 50, leading), rng.uniform(0, 50, leading), rng.random(leading)], axis=-1)
    got = log_probs(double(advantage), double(index)).exp()
    got_log = log_probs(double(advantage), double(index))
    first, second = component_log_probs(double(advantage), double(index))
    per_family = family_log_probs(double(advantage), double(index))
    assert got.shape == got_log.shape == first.shape == second.shape == (*leading, actions)
    assert per_family.shape == (*leading, families, actions)
    for place in np.ndindex(*leading):
        a, (u1, u2, epsilon) = advantage[place], index[place]
        want = mixture(a, (u1, u2, epsilon))
        np.testing.assert_allclose(got[place].numpy(), want, rtol=1e-11, atol=1e-300)
        np.testing.assert_allclose(got_log[place].numpy(), np.log(want), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(first[place].exp().numpy(), epsilon * softmax(u1 * a[0]), rtol=1e-11)
        np.testing.assert_allclose(second[place].exp().numpy(), (1 - epsilon) * softmax(u2 * a[-1]), rtol=1e-11)
        for family in range(families):
            np.testing.assert_allclose(per_family[place][family].numpy(), np.log(want), rtol=1e-11, atol=1e-12)


def test_two_actions_by_hand():
    # A1 = (log 3, 0), u1 = 1 -> (3/4, 1/4).  A2 = (0, log 3), u2 = 2 -> (1/10, 9/10).  eps = 0.2:
    # pi(0) = 0.2 * 0.75 + 0.8 * 0.1 = 0.23.
    advantage = double([[math.log(3), 0.0], [0.0, math.log(3)]])
    assert log_probs(advantage, double([1.0, 2.0, 0.2])).exp().tolist() == pytest.approx([0.23, 0.77], rel=1e-14)
    first, second = component_log_probs(advantage, double([1.0, 2.0, 0.2]))
    assert first.exp().tolist() == pytest.approx([0.15, 0.05], rel=1e-14)
    assert second.exp().tolist() == pytest.approx([0.08, 0.72], rel=1e-14)


def test_one_family_serves_both_components():
    # A = (log 3, 0): u1 = 1 -> (3/4, 1/4), u2 = 2 -> (9/10, 1/10); eps = 0.2: pi(0) = 0.15 + 0.72 = 0.87.
    got = log_probs(double([[math.log(3), 0.0]]), double([1.0, 2.0, 0.2])).exp()
    assert got.tolist() == pytest.approx([0.87, 0.13], rel=1e-14)


@pytest.mark.parametrize("families", [1, 2])
def test_inverse_temperature_zero_is_the_uniform_policy(families):
    advantage = torch.randn(families, 5, generator=torch.Generator().manual_seed(0)) * 1e4
    for epsilon in (0.0, 0.3, 1.0):
        got = log_probs(advantage, torch.tensor([0.0, 0.0, epsilon])).exp()
        torch.testing.assert_close(got, torch.full((5,), 0.2))


def test_fixed_selection_is_the_plain_softmax():
    # The table's Fixed Selection (1/tau1, 1/tau2, eps) = (1, 0, 1).
    advantage = torch.randn(1, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    got = log_probs(advantage, double([1.0, 0.0, 1.0])).exp()
    np.testing.assert_allclose(got.numpy(), softmax(advantage[0].numpy()), rtol=1e-13)


def test_an_epsilon_greedy_policy_is_in_the_space():
    # u1 = 0 is uniform, u2 = 50 on gaps of 10 is greedy: pi = eps/4 everywhere, plus 1 - eps on the best action.
    got = log_probs(double([[0.0, 10.0, -10.0, 0.0]]), double([0.0, 50.0, 0.2])).exp()
    assert got.tolist() == pytest.approx([0.05, 0.85, 0.05, 0.05], rel=1e-12)


@pytest.mark.parametrize("families", [1, 2])
def test_shifting_the_advantages_of_a_family_changes_nothing(families):
    advantage = torch.randn(7, families, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    index = double([1.5, 4.0, 0.3]).expand(7, 3)
    shift = torch.linspace(-50, 50, 7 * families, dtype=torch.float64).reshape(7, families, 1)
    torch.testing.assert_close(log_probs(advantage + shift, index), log_probs(advantage, index), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("families", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 1.0])
def test_huge_advantages_stay_finite_and_normalized(families, epsilon):
    generator = torch.Generator().manual_seed(3)
    advantage = (torch.rand(20, families, 6, generator=generator) * 2 - 1) * 1e4
    advantage.requires_grad_()
    index = torch.tensor([50.0, 50.0, epsilon]).expand(20, 3)
    log_pi, pi = log_probs(advantage, index), log_probs(advantage, index).exp()
    per_family = family_log_probs(advantage, index)
    assert torch.isfinite(log_pi).all()
    assert torch.isfinite(per_family).all()
    torch.testing.assert_close(pi.sum(-1), torch.ones(20), rtol=1e-5, atol=1e-5)
    assert (pi >= 0).all()
    for output in (log_pi, pi, per_family):
        (gradient,) = torch.autograd.grad(output.sum(), advantage, retain_graph=True)
        assert torch.isfinite(gradient).all()


# --- eps = 0 and eps = 1: one component is gone ---------------------------------------------------


@pytest.mark.parametrize("families", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_a_component_of_weight_zero_leaves_the_other_alone(families, epsilon):
    rng = np.random.default_rng(4)
    values = rng.normal(size=(families, 5))
    advantage, index = double(values, requires_grad=True), double([2.0, 3.0, epsilon])
    left = 0 if epsilon == 1.0 else families - 1  # the family that still acts
    u = 2.0 if epsilon == 1.0 else 3.0
    log_pi = log_probs(advantage, index)
    np.testing.assert_allclose(log_pi.detach().numpy(), np.log(softmax(u * values[left])), rtol=1e-12)
    for action in range(5):
        (gradient,) = torch.autograd.grad(log_pi[action], advantage, retain_graph=True)
        want = np.zeros((families, 5))
        want[left] = u * (np.eye(5)[action] - softmax(u * values[left]))
        np.testing.assert_allclose(gradient.numpy(), want, rtol=1e-10, atol=1e-13)
        if families == 2:
            assert (gradient[1 - left] == 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_a_family_of_weight_zero_gets_no_policy_gradient(epsilon):
    advantage = double(np.random.default_rng(5).normal(size=(4, 2, 3)), requires_grad=True)
    index = double([2.0, 3.0, epsilon]).expand(4, 3)
    per_family = family_log_probs(advantage, index)
    assert torch.isfinite(per_family).all()
    (gradient,) = torch.autograd.grad(per_family[..., 0].sum(), advantage)
    gone = 0 if epsilon == 0.0 else 1
    assert torch.isfinite(gradient).all()
    assert (gradient[:, gone] == 0).all()
    assert (gradient[:, 1 - gone] != 0).any()


# --- Gradients ------------------------------------------------------------------------------------


def test_the_mixture_differentiates_through_both_components():
    rng = np.random.default_rng(6)
    index = (2.0, 3.5, 0.3)
    one, two = rng.normal(size=(1, 4)), rng.normal(size=(2, 4))
    for values in (one, two):
        advantage = double(values, requires_grad=True)
        log_pi = log_probs(advantage, double(index))
        for action in range(4):
            (gradient,) = torch.autograd.grad(log_pi[action], advantage, retain_graph=True)
            first, second = mixture_gradients(values, index, action)
            want = np.stack([first, second]) if len(values) == 2 else (first + second)[None]
            np.testing.assert_allclose(gradient.numpy(), want, rtol=1e-10, atol=1e-13)


def test_each_family_is_differentiable_in_itself_only():
    values = np.random.default_rng(7).normal(size=(2, 4))
    index = (2.0, 3.5, 0.3)
    advantage = double(values, requires_grad=True)
    per_family = family_log_probs(advantage, double(index))
    for action in range(4):
        parts = mixture_gradients(values, index, action)
        for family in range(2):
            (gradient,) = torch.autograd.grad(per_family[family, action], advantage, retain_graph=True)
            assert (gradient[1 - family] == 0).all()  # exactly
            np.testing.assert_allclose(gradient[family].numpy(), parts[family], rtol=1e-10, atol=1e-13)


def test_one_family_goes_through_both_components():
    values = np.random.default_rng(8).normal(size=(1, 4))
    advantage = double(values, requires_grad=True)
    per_family = family_log_probs(advantage, double([2.0, 3.5, 0.3]))
    for action in range(4):
        (gradient,) = torch.autograd.grad(per_family[0, action], advantage, retain_graph=True)
        first, second = mixture_gradients(values, (2.0, 3.5, 0.3), action)
        np.testing.assert_allclose(gradient[0].numpy(), first + second, rtol=1e-10, atol=1e-13)


# --- Sampling and entropy -------------------------------------------------------------------------


def test_sampling_frequencies():
    wanted = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05])
    generator = torch.Generator().manual_seed(0)
    count = 40_000
    actions = sample(wanted.expand(count, 5), generator)
    assert actions.shape == (count,)
    assert not actions.is_floating_point()
    seen = torch.bincount(actions, minlength=5).numpy()
    assert seen[1] == 0  # probability 0 is never drawn
    expected = count * wanted.numpy()
    chi_square = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True) if e > 0)
    assert chi_square < stats.chi2.ppf(1 - 1e-4, df=3)


def test_each_row_is_sampled_from_its_own_distribution():
    rows = torch.eye(6)[torch.tensor([3, 0, 5, 1, 1, 4, 2])]
    assert sample(rows, torch.Generator().manual_seed(1)).tolist() == [3, 0, 5, 1, 1, 4, 2]


def test_rows_and_calls_are_independent_and_seeded():
    fair = torch.full((2000, 2), 0.5)
    generator = torch.Generator().manual_seed(2)
    first, second = sample(fair, generator), sample(fair, generator)
    again = sample(fair, torch.Generator().manual_seed(2))
    assert torch.equal(first, again)
    # Equal pairs among 2000 fair ones: 1000 +- 22; five deviations either way.
    assert abs(int((first == second).sum()) - 1000) < 112
    assert abs(int((first[:-1] == first[1:]).sum()) - 1000) < 112


def test_entropy_by_hand():
    uniform = torch.full((3, 8), 1 / 8, dtype=torch.float64).log()
    assert entropy(uniform).tolist() == pytest.approx([math.log(8)] * 3, rel=1e-14)
    quarter = double([0.5, 0.25, 0.25]).log()
    assert entropy(quarter).item() == pytest.approx(1.5 * math.log(2), rel=1e-14)
    certain = double([1.0, 0.0, 0.0]).log()  # holds -inf
    assert entropy(certain).item() == 0.0
    assert entropy(double([0.5, 0.5, 0.0]).log()).item() == pytest.approx(math.log(2), rel=1e-14)


# --- Q = (A − E_π[A]) + V -------------------------------------------------------------------------


def test_centered_q_by_hand():
    # pi = (0.25, 0.75). Family 0: A = (4, 8), E = 7, V = 100. Family 1: A = (0, -4), E = -3, V = -1.
    got = centered_q(
        double([[4.0, 8.0], [0.0, -4.0]]),
        double([100.0, -1.0]),
        double([0.25, 0.75]).log(),
        stop_gradient=True,
    )
    assert got.tolist() == [pytest.approx([97.0, 101.0]), pytest.approx([2.0, -2.0])]


@pytest.mark.parametrize("stop_gradient", [True, False])
def test_the_policys_mean_of_q_is_v(stop_gradient):
    generator = torch.Generator().manual_seed(4)
    advantage = torch.randn(3, 5, 2, 4, generator=generator, dtype=torch.float64)
    value = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    log_pi = log_probs(advantage, double([1.0, 2.0, 0.4]).expand(3, 5, 3))
    q = centered_q(advantage, value, log_pi, stop_gradient=stop_gradient)
    assert q.shape == (3, 5, 2, 4)
    torch.testing.assert_close((q * log_pi.exp().unsqueeze(-2)).sum(-1), value)


def test_with_stop_gradient_q_trains_the_advantages_only():
    pi = np.array([0.2, 0.3, 0.5])
    advantage = double(np.random.default_rng(9).normal(size=(2, 3)), requires_grad=True)
    value, log_pi = double([1.0, 2.0], requires_grad=True), double(np.log(pi), requires_grad=True)
    q = centered_q(advantage, value, log_pi, stop_gradient=True)
    for family in range(2):
        for action in range(3):
            to_a, to_v, to_pi = torch.autograd.grad(
                q[family, action], (advantage, value, log_pi), retain_graph=True, allow_unused=True
            )
            assert to_v is None or (to_v == 0).all()
            assert to_pi is None or (to_pi == 0).all()
            want = np.zeros((2, 3))
            want[family] = np.eye(3)[action] - pi  # d (A(a) - sum_b pi(b) A(b)) / d A
            np.testing.assert_allclose(to_a.numpy(), want, rtol=1e-12, atol=1e-15)


def test_as_printed_q_passes_gradient_to_policy_and_value():
    pi = np.array([0.2, 0.3, 0.5])
    values = np.random.default_rng(10).normal(size=(1, 3))
    advantage = double(values, requires_grad=True)
    value, log_pi = double([1.0], requires_grad=True), double(np.log(pi), requires_grad=True)
    q = centered_q(advantage, value, log_pi, stop_gradient=False)
    to_a, to_v, to_pi = torch.autograd.grad(q[0, 0], (advantage, value, log_pi))
    np.testing.assert_allclose(to_a[0].numpy(), np.eye(3)[0] - pi, rtol=1e-12)
    assert to_v.tolist() == [1.0]
    np.testing.assert_allclose(to_pi.numpy(), -pi * values[0], rtol=1e-12)  # d(-sum pi A) / d log pi


def test_for_one_softmax_the_centered_advantage_follows_the_score():
    # grad Abar = tau grad log pi, here tau = 1/2: the consistency that the stop-gradient is for.
    advantage = double(np.random.default_rng(11).normal(size=(1, 4)), requires_grad=True)
    log_pi = log_probs(advantage, double([2.0, 0.0, 1.0]))
    q = centered_q(advantage, double([0.0]), log_pi, stop_gradient=True)
    for action in range(4):
        (q_gradient,) = torch.autograd.grad(q[0, action], advantage, retain_graph=True)
        (score,) = torch.autograd.grad(log_pi[action], advantage, retain_graph=True)
        torch.testing.assert_close(q_gradient, score / 2)


def test_the_entropy_has_a_gradient_where_a_probability_underflows() -> None:
    logits = torch.tensor([[300.0, 0.0, 299.0]], requires_grad=True)
    log_pi = torch.log_softmax(logits, -1)
    assert log_pi.exp()[0, 1] == 0
    found = entropy(log_pi)
    p = 1 / (1 + math.exp(-1))
    assert found.item() == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p), rel=1e-5)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    # d/dx of the entropy of Softmax(x, 0) is −x·p·(1 − p).
    assert gradient[0].tolist() == pytest.approx([-p * (1 - p), 0.0, p * (1 - p)], rel=1e-4)
