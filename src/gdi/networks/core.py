"""The recurrent core: an LSTM that starts afresh where an episode starts."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class LstmCore(nn.Module):
    """[T, B, inputs] -> [T, B, units]; the state is one tensor [B, 2 · units], hidden and cell side by side."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.lstm = nn.LSTM(inputs, units)

    def forward(self, x: Tensor, episode_start: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Unroll, zeroing a sequence's state before each step at which its episode starts (episode_start [T, B]).

        Steps between two such moments run as one kernel call, so the cost is that of the starts, not of the steps.
        """
        hidden, cell = (part.contiguous() for part in state.unsqueeze(0).chunk(2, dim=-1))  # each [1, B, units]
        borders = [0, *(t for t in episode_start.any(dim=1).nonzero().flatten().tolist() if t > 0), len(x)]
        outputs = []
        for begin, end in pairwise(borders):
            keep = (~episode_start[begin]).unsqueeze(-1)  # [B, 1]
            output, (hidden, cell) = self.lstm(x[begin:end], (hidden * keep, cell * keep))
            outputs.append(output)
        return torch.cat(outputs), torch.cat([hidden[0], cell[0]], dim=-1)
