"""The learner: it turns one batch into one update of the network parameters (one step of T)."""

from __future__ import annotations

import copy
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from gdi.algorithms import Algorithm, Transitions
from gdi.config import Config
from gdi.cores import set_torch_threads
from gdi.errors import DivergenceError
from gdi.learner.group import LearnerGroup
from gdi.learner.optimizer import Optimizer
from gdi.networks import AgentNetwork, AgentOutput, Seen, copy_parameters
from gdi.networks.frames import stack_frames
from gdi.types import Array, Batch, Metrics, State, column_slice

# Health metrics do not affect training. A sample of the updates says as much as all of them and costs less.
HEALTH_EVERY_UPDATES = 4


class Learner:
    """The network parameters (θ), their optimizer, and the progress of training."""

    def __init__(
        self,
        network: AgentNetwork,
        algorithm: Algorithm,
        config: Config,
        device: torch.device,
        chunk_sequences: int = 0,
        group: LearnerGroup | None = None,
    ) -> None:
        self.network = network.to(device)
        self._theta: dict[str, Tensor] = self.network.state_dict()  # the same tensors by name
        self._algorithm = algorithm
        self._config = config
        self._device = device
        self._optimizer = Optimizer(self.network, config)
        self._target = copy.deepcopy(self.network) if algorithm.target_period_updates else None
        self._target_theta: dict[str, Tensor] = {} if self._target is None else self._target.state_dict()
        self._chunk_sequences = chunk_sequences  # 0: a batch is one chunk
        self._group = group  # several learners share every batch
        workers = config.run.workers
        self._pool = ThreadPoolExecutor(workers, "learner", set_torch_threads, (1,)) if workers > 1 else None
        self.updates = 0
        self.trained_transitions = 0
        self.skipped_updates = 0
        self._skipped_in_a_row = 0

    @property
    def progress(self) -> float:
        """Share of all training done, in [0, 1]."""
        data = self._config.data
        planned = data.trained_transitions(self._config.steps)
        if self._algorithm.rows == "first":
            planned //= data.slice_steps
        return min(1.0, self.trained_transitions / planned)

    @property
    def _trained_rows(self) -> slice:
        """The rows of a batch that are trained. Others warm up a recurrent state or serve the target of the first."""
        first = self._config.data.burn_in_steps
        return slice(first, first + 1 if self._algorithm.rows == "first" else None)

    def update(self, batch: Batch) -> Metrics:
        """Train one batch: θ ← T(θ, batch).

        If the loss or the gradient is NaN or infinite, the update is skipped and counted, and θ stays unchanged.
        """
        moments = self._observe(batch) if self._config.network.normalize else {}
        metrics, transitions = self._accumulate_gradient(batch)
        norm = self._optimizer.clip()
        metrics["optimizer/gradient_norm"] = norm
        metrics["learner/skipped"] = 0.0
        progress = self.progress
        self.trained_transitions += transitions
        if math.isfinite(norm) and math.isfinite(metrics["loss/total"]):
            metrics["optimizer/learning_rate"] = self._optimizer.step(self.updates, progress)
            self.updates += 1
            self._skipped_in_a_row = 0
            self._renew_target()
        else:
            self.network.load_state_dict(moments, strict=False)
            self._skip(norm, metrics["loss/total"])
            # Report only the count, because one NaN would make the means of a whole log interval NaN.
            metrics = {"learner/skipped": 1.0}
        return metrics

    def _observe(self, batch: Batch) -> dict[str, Tensor]:
        """Move the running moments of the observations, which belong to θ. Return what they were."""
        before = {name: value.clone() for name, value in self.network.named_buffers()}
        first = self._config.data.burn_in_steps
        seen = Seen(*(x[first:] for x in self._seen(batch)))
        with torch.no_grad():
            self.network.observe(seen, self._tensor(batch.valid[first:]))
        return before

    def _renew_target(self) -> None:
        """After k updates the target network is the network of update ⌊k / P⌋ · P."""
        if self._target is not None and self.updates % self._algorithm.target_period_updates == 0:
            copy_parameters(self._target_theta, self._theta)

    def _accumulate_gradient(self, batch: Batch) -> tuple[Metrics, int]:
        """Accumulate the gradient of a batch. Return the metrics and the number of transitions.

        The batch may be split into chunks, so that it fits into memory or keeps several cores busy. A loss is a mean
        over trained steps, so the whole is the sum of the chunks, weighted by their share of those steps. The sum is in
        the order of the chunks, whichever finishes first. Each learner of a group has a part of the batch, and these
        parts are summed in the same way.
        """
        batch = self._algorithm.prepare(batch)
        size = self._chunk_sequences or batch.num_sequences
        chunks = [column_slice(batch, begin, begin + size) for begin in range(0, batch.num_sequences, size)]
        rows = self._trained_rows
        counts = [int(np.count_nonzero(chunk.valid[rows])) for chunk in chunks]
        here = sum(counts)
        whole = here if self._group is None else self._group.sum_count(here)
        shares = [count / max(1, whole) for count in counts]
        weights = shares if self._algorithm.reduction == "mean" else [1.0] * len(chunks)
        run = map if self._pool is None else self._pool.map
        total: Metrics = {}
        for i, (gradients, values) in enumerate(run(self._chunk_gradients, chunks, weights)):
            self._optimizer.accumulate(gradients, fresh=i == 0)
            for name, value in values.items():
                weight = weights[i] if name == "loss/total" else shares[i]
                total[name] = total.get(name, 0.0) + weight * value
        versions = batch.version[rows][batch.valid[rows]]
        lag = self.updates - float(versions.sum()) / versions.size if versions.size else 0.0
        total["actor/parameter_lag_updates"] = lag * (here / max(1, whole))
        if self._group is not None:
            self._group.sum_gradients(self._optimizer.parameters)
            total = self._group.sum_metrics(total)
        return total, whole

    def _chunk_gradients(self, batch: Batch, weight: float) -> tuple[list[Tensor | None], Metrics]:
        """Return ∇(weight · loss) of one chunk, and its metrics."""
        seen, state = self._seen(batch), self._tensor(batch.state)
        first = self._config.data.burn_in_steps
        if first:
            with torch.no_grad():
                state = self.network(Seen(*(x[:first] for x in seen)), state).state
        trained = Seen(*(x[first:] for x in seen)) if first else seen
        data = Transitions(
            seen=trained,
            action=self._tensor(batch.action[first:]),
            reward=self._tensor(batch.reward[first:]),
            terminated=self._tensor(batch.terminated[first:]),
            truncated=self._tensor(batch.truncated[first:]),
            mask=self._tensor(batch.valid[first:]),
            behavior_prob=self._tensor(batch.behavior_prob[first:]),
            extras={name: self._tensor(array[first:]) for name, array in batch.extras.items()},
        )
        if self._target is not None:  # first, so that the online weights stay in the cache until the backward pass
            data = data._replace(target=self._bootstrap(self._target, data, state))
        first_only = self._algorithm.rows == "first"
        output = self.network(Seen(*(x[:1] for x in trained)) if first_only else trained, state)
        health = self.updates % HEALTH_EVERY_UPDATES == 0
        loss = self._algorithm.loss(self.network, output, data, health=health)
        total = loss.total if weight == 1.0 else weight * loss.total
        gradients = torch.autograd.grad(total, self._optimizer.parameters, allow_unused=True)
        # Transfer all metrics at once, because on a GPU every transfer waits for the whole queue.
        metrics = {**loss.metrics, "loss/total": loss.total}
        values = torch.stack([value.detach() for value in metrics.values()]).tolist()
        return list(gradients), dict(zip(metrics, values, strict=True))

    def _bootstrap(self, target: AgentNetwork, data: Transitions, state: Tensor) -> AgentOutput:
        """Return the target network's output at each column's bootstrap row, [1, B, ...]."""
        row = self._algorithm.bootstrap_row(data)
        if row is None:
            seen = Seen(*(x[-1:] for x in data.seen))
        else:
            column = torch.arange(len(row), device=row.device)
            seen = Seen(*(x[row, column].unsqueeze(0) for x in data.seen))
        with torch.no_grad():
            output: AgentOutput = target(seen, state)
        return output

    def _seen(self, batch: Batch) -> Seen:
        """Return the network's input with stacked frames, [L + 1, B, ...]."""
        episode_start = self._tensor(batch.episode_start)
        frame_stack = 1 + len(batch.obs) - len(batch.episode_start)
        return Seen(
            obs=stack_frames(self._tensor(batch.obs), episode_start, frame_stack),
            episode_start=episode_start,
            previous_action=self._tensor(batch.previous_action),
            previous_reward=self._tensor(batch.previous_reward),
            index=self._tensor(batch.index),
            vector=self._tensor(batch.vector),
            action_mask=self._tensor(batch.action_mask),
        )

    def _skip(self, norm: float, loss: float) -> None:
        self.skipped_updates += 1
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row >= self._config.optimizer.max_nonfinite_updates:
            raise DivergenceError(
                f"{self._skipped_in_a_row} updates in a row were NaN or infinite (loss {loss}, gradient norm {norm}) "
                f"after {self.updates} good ones: lower --optimizer.learning-rate or the loss scales."
            )

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def parameters(self) -> dict[str, Tensor]:
        """Copy the parameters (θ) to the CPU, where the actors need them."""
        return {name: value.to("cpu", copy=True) for name, value in self._theta.items()}

    def state_dict(self) -> State:
        return {
            "network": self.parameters(),
            "optimizer": self._optimizer.state_dict(),
            "updates": self.updates,
            "trained_transitions": self.trained_transitions,
            "skipped_updates": self.skipped_updates,
            "skipped_in_a_row": self._skipped_in_a_row,
            **({} if self._target is None else {"target": dict(self._target.state_dict())}),
        }

    def load_state_dict(self, state: State) -> None:
        self.network.load_state_dict({name: torch.as_tensor(value) for name, value in state["network"].items()})
        self._optimizer.load_state_dict(state["optimizer"])
        if self._target is not None:
            self._target.load_state_dict({name: torch.as_tensor(value) for name, value in state["target"].items()})
        self.updates = int(state["updates"])
        self.trained_transitions = int(state["trained_transitions"])
        self.skipped_updates = int(state["skipped_updates"])
        self._skipped_in_a_row = int(state["skipped_in_a_row"])
