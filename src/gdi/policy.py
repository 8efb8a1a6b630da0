"""The behavior policy π_{θ_λ} = ε·Softmax(A1/τ1) + (1 − ε)·Softmax(A2/τ2) (equ: soft epsilon policy space).

Everywhere Softmax(A·u) with u = 1/τ ≥ 0; τ itself is never formed, so u = 0 is the uniform policy. Advantages carry
their family on the axis before the actions, ``[..., F, A]``; with one family (GDI-I) A1 = A2 = A.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gdi.errors import Diverged


def component_log_probs(advantage: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """log(ε·Softmax(A1·u1)) and log((1 − ε)·Softmax(A2·u2)), each [..., A].

    advantage is [..., F, A], index is [..., 3] = (u1, u2, ε). A component of weight 0 is −inf, and gets no gradient.
    """
    inverse_tau_1, inverse_tau_2, epsilon = index.unsqueeze(-2).unbind(-1)  # each [..., 1]
    first = torch.log_softmax(advantage[..., 0, :] * inverse_tau_1, dim=-1)
    second = torch.log_softmax(advantage[..., -1, :] * inverse_tau_2, dim=-1)
    return torch.log(epsilon) + first, torch.log1p(-epsilon) + second


def log_probs(advantage: Tensor, index: Tensor) -> Tensor:
    """log π_λ(·|s) of the mixture, [..., A]: logaddexp of the two components."""
    return torch.logaddexp(*component_log_probs(advantage, index))


def family_log_probs(advantage: Tensor, index: Tensor) -> Tensor:
    """log π_λ(·|s) once per family, [..., F, A]: equal in value, each differentiable in its own family only.

    With two families the other family's component is a constant, so that each A_i follows its own advantage estimate.
    With one family it is the mixture, differentiable through both components.
    """
    first, second = component_log_probs(advantage, index)
    if advantage.shape[-2] == 1:
        return torch.logaddexp(first, second).unsqueeze(-2)
    return torch.stack([torch.logaddexp(first, second.detach()), torch.logaddexp(first.detach(), second)], dim=-2)


def sample(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """a ~ π: [B, A] -> [B]. Raises Diverged if θ is no longer finite."""
    if not probabilities.isfinite().all():
        raise Diverged("the policy is not finite any more: lower --optimizer.learning-rate or the loss scales.")
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)


def entropy(log_probabilities: Tensor) -> Tensor:
    """−Σ_a π log π, [..., A] -> [...]; an action of probability 0 contributes 0."""
    entropies: Tensor = torch.special.entr(log_probabilities.exp()).sum(-1)
    return entropies
