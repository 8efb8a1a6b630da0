"""V-trace and ReTrace (Equ: vtrace, Equ: retrace), each sum written as its backward recursion.

All functions are time-major and indifferent to trailing axes: ``[T, ...]``. ``ratio`` is π/μ of the action taken. A
step that is no transition (a reset, or beyond the step budget) has ratio 0: then ρ = c = 0, its own target is its
value, and the step before it bootstraps on that value. ``discount`` is γ, or 0 where the step terminated the episode.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _backward_sum(delta: Tensor, decay: Tensor, last: Tensor) -> Tensor:
    """x_t = delta_t + decay_t · x_{t+1}, from x_T = last: [T, ...] -> [T, ...], one fused operation a step."""
    x, sums = last, []
    for delta_t, decay_t in zip(reversed(delta.unbind()), reversed(decay.unbind()), strict=True):
        x = torch.addcmul(delta_t, decay_t, x)
        sums.append(x)
    return torch.stack(sums[::-1]) if sums else delta


def vtrace(values: Tensor, reward: Tensor, discount: Tensor, ratio: Tensor, *, rho_bar: float, c_bar: float) -> Tensor:
    """V-trace targets v_t = V(s_t) + Σ_{k≥0} γ^k c_[t:t+k−1] ρ_{t+k} δ_{t+k},  δ_t = r_t + γ V(s_{t+1}) − V(s_t).

    ρ_t = min(π/μ, ρ̄), c_t = min(π/μ, c̄). Recursion: v_t − V_t = ρ_t δ_t + γ c_t (v_{t+1} − V_{t+1}).
    values is [T + 1, ...] with the bootstrap last; the result is [T + 1, ...], whose last entry is that bootstrap.
    """
    rho, c = ratio.clamp(max=rho_bar), ratio.clamp(max=c_bar)
    delta = rho * (reward + discount * values[1:] - values[:-1])
    decay = discount * c
    correction = _backward_sum(delta, decay, torch.zeros_like(values[-1]))
    return torch.cat([values[:-1] + correction, values[-1:]])


def retrace(
    q_taken: Tensor, next_value: Tensor, reward: Tensor, discount: Tensor, ratio: Tensor, *, c_bar: float
) -> Tensor:
    """ReTrace targets q_t = Q(s_t, a_t) + Σ_{k≥0} γ^k c_[t+1:t+k] δ_{t+k},  δ_t = r_t + γ N_t − Q(s_t, a_t).

    N_t is ``next_value``: V(s_{t+1}) = E_π Q(s_{t+1}, ·), or the printed Q(s_{t+1}, a_{t+1}) (``sarsa_next_value``).
    Recursion: q_t − Q_t = δ_t + γ c_{t+1} (q_{t+1} − Q_{t+1}). All arguments and the result are [T, ...].
    """
    delta = reward + discount * next_value - q_taken
    decay = discount[:-1] * ratio[1:].clamp(max=c_bar)
    before_last = _backward_sum(delta[:-1], decay, delta[-1])
    return q_taken + torch.cat([before_last, delta[-1:]])


def sarsa_next_value(q_taken: Tensor, values: Tensor, valid: Tensor) -> Tensor:
    """Q(s_{t+1}, a_{t+1}) for the printed δ^Q; V(s_{t+1}) where no action was taken: at the window's end or a reset.

    q_taken [T, ...], values [T + 1, ...], valid [T, ...] -> [T, ...].
    """
    return torch.cat([torch.where(valid[1:], q_taken[1:], values[1:-1]), values[-1:]])


def policy_gradient_advantage(
    values: Tensor, targets: Tensor, reward: Tensor, discount: Tensor, ratio: Tensor, *, rho_bar: float
) -> Tensor:
    """ρ_t (r_t + γ v_{t+1} − V(s_t)), the factor of ∇ log π. values, targets [T + 1, ...] -> [T, ...]."""
    return ratio.clamp(max=rho_bar) * (reward + discount * targets[1:] - values[:-1])
