"""Settings of evaluation, logging, checkpoints and hardware."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal

from gdi.config.checks import not_negative, positive
from gdi.config.traits import space_traits

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation in separate environments."""

    at_most: ClassVar[Mapping[str, float]] = {"episodes": 10**6}

    every_steps: int = 1_000_000
    """Training steps between two evaluations. The last one is at the end."""
    episodes: int = 32
    """Number of episodes per evaluation, which at most 32 environments share."""
    greedy: bool = False
    """Play the most probable action in evaluations, instead of drawing one from the policy."""
    index: tuple[float, ...] = ()
    """Exploration setting (λ) of evaluations, one number per component. If empty, the controller chooses."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "evaluation", "every_steps", "episodes")
        names = [field.name for field in fields(config.index_space)]
        limits = space_traits(config.index_space).limits
        if self.index and len(self.index) != len(names):
            yield f"--evaluation.index needs one number per component ({', '.join(names)}), not {len(self.index)}."
        for name, value in zip(names, self.index, strict=False):
            limit = limits.get(name, math.inf)
            if not 0 <= value <= limit:
                allowed = "0 or more" if math.isinf(limit) else f"in [0, {limit:g}]"
                yield f"--evaluation.index: {name} must be {allowed}, not {value:g}."


@dataclass(frozen=True)
class RunConfig:
    """Logging, checkpoints and hardware."""

    at_most: ClassVar[Mapping[str, float]] = {"keep_checkpoints": 10**6, "threads": 4_096, "workers": 1_024}

    log_every_steps: int = 100_000
    """Training steps between two lines of metrics."""
    checkpoint_every_steps: int = 500_000
    """Training steps between two checkpoints. The last one is at the end."""
    keep_checkpoints: int = 3
    """Number of newest checkpoints to keep. The one with the best evaluation is kept, too."""
    save_replay: bool = True
    """Save the replay's steps in checkpoints. Without them a resumed run first fills its memory again."""
    states_per_stage: int = 1000
    """Number of states to keep from each third of the run, for gdi report --tsne. 0 keeps none."""
    device: str = "auto"
    """Device for the networks of learner, actor and evaluator: auto, cpu or cuda."""
    overlap: bool = False
    """Act and learn at the same time, on data that is one window older. It helps with a GPU or a slow environment.
    Runs on Ray always do this, except in lockstep."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Number format of the torsos. bfloat16 rounds more and is faster if the hardware has it (AVX512-BF16, AMX, a GPU).
    Parameters, LSTM, heads, losses and optimizer stay float32."""
    compile: bool = False
    """Compile the torsos with torch.compile. It needs a C++ compiler and a minute, and pays in long runs on a GPU."""
    threads: int = 0
    """Number of CPU threads of torch and of the Atari emulators, at most one per core; 0 means all cores.
    On Ray each process has as many as its CPUs in the placement."""
    workers: int = 1
    """Number of chunks of a batch that are trained in parallel, one thread each. 1 leaves all threads to torch."""

    def problems(self, config: Config) -> Iterator[str]:
        yield from positive(self, "run", "log_every_steps", "checkpoint_every_steps", "keep_checkpoints", "workers")
        yield from not_negative(self, "run", "threads", "states_per_stage")
        if self.device not in ("auto", "cpu") and not self.device.startswith("cuda"):
            yield f"--run.device must be auto, cpu or cuda, not {self.device!r}."
