"""The recurrent core: an LSTM whose state is reset at the start of an episode."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class LstmCore(nn.Module):
    """An LSTM, [T, B, inputs] -> [T, B, units]; its state is [B, 2 · units], hidden and then cell."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.lstm = nn.LSTM(inputs, units)

    def forward(self, x: Tensor, episode_start: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run the LSTM over time, with a zero state wherever an episode starts (episode_start [T, B]).

        The steps between two episode starts run as one kernel call. The cost therefore depends on the number of starts,
        not of steps.
        """
        hidden, cell = (part.contiguous() for part in state.unsqueeze(0).chunk(2, dim=-1))  # each [1, B, units]
        borders = [0, *(t for t in episode_start.any(dim=1).nonzero().flatten().tolist() if t > 0), len(x)]
        outputs = []
        for begin, end in pairwise(borders):
            keep = (~episode_start[begin]).unsqueeze(-1)  # [B, 1]
            output, (hidden, cell) = self.lstm(x[begin:end], (hidden * keep, cell * keep))
            outputs.append(output)
        return torch.cat(outputs), torch.cat([hidden[0], cell[0]], dim=-1)
