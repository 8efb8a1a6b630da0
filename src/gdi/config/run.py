"""Evaluation, logging, checkpoints and hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation in separate environments, with λ from the controller without its exploration bonus."""

    every_steps: int = 1_000_000
    """Evaluate each time this many training steps have passed, and at the end."""
    episodes: int = 32
    """Episodes per evaluation, shared out over at most 32 environments."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "evaluation", "every_steps", "episodes")


@dataclass(frozen=True)
class RunConfig:
    """Logging, checkpoints and hardware."""

    log_every_steps: int = 100_000
    """One line of training metrics each time this many steps have passed."""
    checkpoint_every_steps: int = 500_000
    """Save a checkpoint each time this many steps have passed, and at the end."""
    keep_checkpoints: int = 3
    """Newest checkpoints kept; the one with the best evaluation is kept besides."""
    device: str = "auto"
    """Where the networks of learner, actor and evaluator live: auto, cpu or cuda."""
    overlap: bool = False
    """Act and learn at the same time, the data one window older: for a GPU, or a slow environment on several cores.
    On Ray they always do, except in lockstep."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the torsos: bfloat16 is faster where the hardware has it (AVX512-BF16, AMX, a GPU) and rounds more;
    θ, LSTM, heads, losses and optimizer stay float32."""
    compile: bool = False
    """Compile the torsos with torch.compile: a minute at the start, for long runs on a GPU; needs a C++ compiler."""
    threads: int = 0
    """Threads of torch, and of the Atari emulators; at most one per core that this process may use; 0: all.
    On Ray each process has as many as its CPUs in the placement."""
    workers: int = 1
    """Chunks of a batch trained side by side, one thread each, gradients summed; 1 leaves all threads to torch."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "run", "log_every_steps", "checkpoint_every_steps", "keep_checkpoints", "workers")
        yield from not_negative(self, "run", "threads")
        if self.device not in ("auto", "cpu") and not self.device.startswith("cuda"):
            yield f"--run.device must be auto, cpu or cuda, not {self.device!r}."
