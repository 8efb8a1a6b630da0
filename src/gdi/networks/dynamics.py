"""Auxiliary tasks on the torso's features φ (Table H "Auxiliary Forward / Inverse Dynamic Task").

φ is taken before the recurrent core, because the core's next input contains the action just taken. The inverse task
could copy its answer from there.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dynamics(nn.Module):
    """Predictions of the next features (φ_{t+1}) from (φ_t, a_t) and of a_t from (φ_t, φ_{t+1})."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.num_actions = num_actions
        self.forward_model = nn.Linear(features + num_actions, features)
        self.inverse_model = nn.Linear(2 * features, num_actions)

    def forward_loss(self, features: Tensor, action: Tensor) -> Tensor:
        """Return the squared error of the predicted next features.

        ½·mean_d (f(φ_t, a_t) − sg(φ_{t+1}))². features [T + 1, B, D], action [T, B] -> [T, B].
        """
        taken = F.one_hot(action, self.num_actions).to(features.dtype)
        predicted = self.forward_model(torch.cat([features[:-1], taken], dim=-1))
        loss: Tensor = 0.5 * (predicted - features[1:].detach()).pow(2).mean(-1)
        return loss

    def inverse_loss(self, features: Tensor, action: Tensor) -> Tensor:
        """Return the cross-entropy of the predicted action.

        −log p(a_t | φ_t, φ_{t+1}). features [T + 1, B, D], action [T, B] -> [T, B].
        """
        logits = self.inverse_model(torch.cat([features[:-1], features[1:]], dim=-1))
        return F.cross_entropy(logits.flatten(0, 1), action.flatten(), reduction="none").view_as(action)
