"""The behavior policy, a mixture of two softmaxes of the advantages.

π_{θ_λ} = ε·Softmax(A1/τ1) + (1 − ε)·Softmax(A2/τ2) (equ: soft epsilon policy space).
The code uses Softmax(A·u) with u = 1/τ ≥ 0 and never computes τ, so u = 0 gives the uniform policy. Advantages have the
family on the axis before the actions, ``[..., F, A]``. With one family (GDI-I), A1 = A2 = A.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gdi.errors import DivergenceError

# The mask of an environment that allows every action.
ALL_VALID = torch.ones(0, dtype=torch.bool)


def filled(values: Tensor, mask: Tensor, value: float) -> Tensor:
    """Return the values with ``value`` for every invalid action: values and mask [..., A].

    A mask of width 0 means that all actions are valid, and costs nothing.
    """
    return values.masked_fill(~mask, value) if mask.shape[-1] else values


def log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Return log Softmax over the valid actions, [..., A]; it is −inf for the others, whose logits do not matter."""
    return torch.log_softmax(filled(logits, mask, -torch.inf), dim=-1)


def component_log_probs(advantage: Tensor, index: Tensor, mask: Tensor = ALL_VALID) -> tuple[Tensor, Tensor]:
    """Return the logarithms of the two weighted components of the mixture.

    log(ε·Softmax(A1·u1)) and log((1 − ε)·Softmax(A2·u2)) (equ: soft epsilon policy space).
    advantage [..., F, A], index [..., 3] = (u1, u2, ε), mask [..., A] -> each [..., A].
    A component of weight 0 is −inf and gets no gradient. Invalid actions have finite placeholders, because −inf in both
    components would make the gradient of their sum NaN.
    """
    inverse_tau_1, inverse_tau_2, epsilon = index.unsqueeze(-2).unbind(-1)  # each [..., 1]
    first = filled(log_softmax(advantage[..., 0, :] * inverse_tau_1, mask), mask, 0.0)
    second = filled(log_softmax(advantage[..., -1, :] * inverse_tau_2, mask), mask, 0.0)
    return torch.log(epsilon) + first, torch.log1p(-epsilon) + second


def log_probs(advantage: Tensor, index: Tensor, mask: Tensor = ALL_VALID) -> Tensor:
    """Return the log-probabilities of the mixture, log π_λ(·|s), [..., A]; −inf for invalid actions."""
    return filled(torch.logaddexp(*component_log_probs(advantage, index, mask)), mask, -torch.inf)


def family_log_probs(advantage: Tensor, index: Tensor, mask: Tensor = ALL_VALID) -> Tensor:
    """Return the log-probabilities of the mixture once per family, log π_λ(·|s), [..., F, A].

    With two families, the values are equal, but each is differentiable only in its own family. The other family's
    component is a constant, so that each A_i follows its own advantage estimate. With one family, the mixture is
    differentiable through both components.
    """
    first, second = component_log_probs(advantage, index, mask)
    if advantage.shape[-2] == 1:
        found = torch.logaddexp(first, second).unsqueeze(-2)
    else:
        found = torch.stack([torch.logaddexp(first, second.detach()), torch.logaddexp(first.detach(), second)], dim=-2)
    return filled(found, mask.unsqueeze(-2), -torch.inf)


def sample(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Draw an action per row, a ~ π: [B, A] -> [B].

    Raise DivergenceError if a probability is NaN or infinite, which means that θ diverged.
    """
    if not math.isfinite(probabilities.sum().item()):
        raise DivergenceError("the policy became NaN or infinite: lower --optimizer.learning-rate or the loss scales.")
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)


def entropy(log_probabilities: Tensor, mask: Tensor = ALL_VALID) -> Tensor:
    """Return the entropy of a policy, −Σ_a π log π, [..., A] -> [...]; probability 0 contributes 0.

    Invalid actions contribute as probability 1 would, which is 0 as well: the gradient at probability 0 is infinite.
    """
    probabilities = filled(log_probabilities, mask, 0.0).exp()
    # A probability that underflows to 0 adds nothing, as 1 does, but its gradient would be ∞ · 0.
    entropies: Tensor = torch.special.entr(probabilities.masked_fill(probabilities == 0, 1.0)).sum(-1)
    return entropies
