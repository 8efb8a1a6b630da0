"""Learners that share every batch. Each trains a part, and all apply the sum of the gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch import distributed as dist

from gdi.types import Metrics


class LearnerGroupError(RuntimeError):
    """The loss of another learner of the group."""


class LearnerGroup:
    """Sums over all learners of a run by torch.distributed, with NCCL between GPUs and Gloo between CPUs.

    Every learner must call the methods in the same order. Each learner weights its gradient by its share of the batch's
    valid steps, so the sum is the gradient of the whole batch.
    """

    def __init__(self, address: str, rank: int, size: int, device: torch.device) -> None:
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, f"tcp://{address}", rank=rank, world_size=size)
        self.rank, self.size = rank, size
        self._device = device

    def sum_count(self, count: int) -> int:
        return int(self._sum(torch.tensor([count], dtype=torch.int64))[0])

    def sum_gradients(self, parameters: list[Tensor]) -> None:
        """Replace every gradient by its sum over the learners, in one message for all gradients."""
        # All learners train the same network, so the same gradients are missing everywhere.
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = self._sum(torch.cat([gradient.reshape(-1) for gradient in gradients]))
        begin = 0
        for gradient in gradients:
            end = begin + gradient.numel()
            gradient.copy_(total[begin:end].view(gradient.shape))
            begin = end

    def sum_metrics(self, metrics: Metrics) -> Metrics:
        total = self._sum(torch.tensor(list(metrics.values()), dtype=torch.float64)).tolist()
        return dict(zip(metrics, total, strict=True))

    def _sum(self, values: Tensor) -> Tensor:
        values = values.to(self._device)
        try:
            dist.all_reduce(values)
        except RuntimeError as error:
            raise LearnerGroupError(f"learner {self.rank} of {self.size} lost the others: {error}") from error
        return values.cpu() if values.dtype != torch.float32 else values
