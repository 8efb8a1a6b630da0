"""V-trace and ReTrace (Equ: vtrace, Equ: retrace), computed by backward recursion.

All functions are time-major and accept any trailing axes, ``[T, ...]``. ``ratio`` is π/μ of the action taken. A step
that is not a transition (a reset, or a step beyond the budget) has ratio 0, so ρ = c = 0. Its target is then its value,
and the step before it bootstraps from that value. ``discount`` is γ, or 0 where the step terminated the episode.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _backward_sum(delta: Tensor, decay: Tensor, last: Tensor) -> Tensor:
    """Sum backward in time, with one fused operation per step.

    x_t = delta_t + decay_t · x_{t+1}, from x_T = last. [T, ...] -> [T, ...].
    """
    x, sums = last, []
    for delta_t, decay_t in zip(reversed(delta.unbind()), reversed(decay.unbind()), strict=True):
        x = torch.addcmul(delta_t, decay_t, x)
        sums.append(x)
    return torch.stack(sums[::-1]) if sums else delta


def vtrace(values: Tensor, reward: Tensor, discount: Tensor, ratio: Tensor, *, rho_bar: float, c_bar: float) -> Tensor:
    """Return the V-trace targets of the values.

    v_t = V(s_t) + Σ_{k≥0} γ^k c_[t:t+k−1] ρ_{t+k} δ_{t+k},  δ_t = r_t + γ V(s_{t+1}) − V(s_t) (Equ: vtrace).
    ρ_t = min(π/μ, ρ̄), c_t = min(π/μ, c̄). Recursion: v_t − V_t = ρ_t δ_t + γ c_t (v_{t+1} − V_{t+1}).
    values [T + 1, ...] -> [T + 1, ...], each with the bootstrap as its last entry.
    """
    rho, c = ratio.clamp(max=rho_bar), ratio.clamp(max=c_bar)
    delta = rho * (reward + discount * values[1:] - values[:-1])
    decay = discount * c
    correction = _backward_sum(delta, decay, torch.zeros_like(values[-1]))
    return torch.cat([values[:-1] + correction, values[-1:]])


def retrace(
    q_taken: Tensor, next_value: Tensor, reward: Tensor, discount: Tensor, ratio: Tensor, *, c_bar: float
) -> Tensor:
    """Return the ReTrace targets of the action values.

    q_t = Q(s_t, a_t) + Σ_{k≥0} γ^k c_[t+1:t+k] δ_{t+k},  δ_t = r_t + γ N_t − Q(s_t, a_t) (Equ: retrace).
    N_t is ``next_value``: V(s_{t+1}) = E_π Q(s_{t+1}, ·), or the printed Q(s_{t+1}, a_{t+1}) (``sarsa_next_value``).
    Recursion: q_t − Q_t = δ_t + γ c_{t+1} (q_{t+1} − Q_{t+1}). All arguments and the result are [T, ...].
    """
    delta = reward + discount * next_value - q_taken
    decay = discount[:-1] * ratio[1:].clamp(max=c_bar)
    before_last = _backward_sum(delta[:-1], decay, delta[-1])
    return q_taken + torch.cat([before_last, delta[-1:]])


def sarsa_next_value(q_taken: Tensor, values: Tensor, valid: Tensor) -> Tensor:
    """Return the next value of the printed ReTrace equation.

    It is Q(s_{t+1}, a_{t+1}), as in the printed δ^Q. At the end of the window and at a reset no action was taken, so it
    is V(s_{t+1}). q_taken [T, ...], values [T + 1, ...], valid [T, ...] -> [T, ...].
    """
    return torch.cat([torch.where(valid[1:], q_taken[1:], values[1:-1]), values[-1:]])


def policy_gradient_advantage(
    values: Tensor, targets: Tensor, reward: Tensor, discount: Tensor, ratio: Tensor, *, rho_bar: float
) -> Tensor:
    """Return the advantage that multiplies ∇ log π in the policy gradient.

    ρ_t (r_t + γ v_{t+1} − V(s_t)). values, targets [T + 1, ...] -> [T, ...].
    """
    return ratio.clamp(max=rho_bar) * (reward + discount * targets[1:] - values[:-1])
