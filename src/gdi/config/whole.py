"""The config of a training run: the paper's tuple (Λ, P_Λ with E, Θ, T, X) and further settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from gdi.config.controller import ControllerConfig, TileBanditConfig
from gdi.config.data import DataConfig, ExactReplayConfig
from gdi.config.env import EnvConfig
from gdi.config.imports import importable_module
from gdi.config.index_space import GDISpace, SpaceConfig
from gdi.config.learner import GDIConfig, LearnerConfig
from gdi.config.network import NetworkConfig
from gdi.config.optimizer import AdamWConfig, OptimizerConfig
from gdi.config.run import EvaluationConfig, RunConfig


@dataclass(frozen=True)
class Config:
    """The config of one training run. Equal configs on equal machines give equal runs.

    ``index_space``, ``controller``, ``learner``, ``optimizer`` and ``data`` have kinds, one dataclass each.
    Yours works as well.
    """

    preset: str = "gdi-i3"
    scale: str = "paper"
    seed: int = 0
    """Seed for all randomness in the run."""
    steps: int = 50_000_000
    """Environment transitions to train on. Table H "Num. Frames" 200M at "Num. Action Repeats" 4."""
    env: EnvConfig = field(default_factory=EnvConfig)
    index_space: SpaceConfig = field(default_factory=GDISpace)
    controller: ControllerConfig = field(default_factory=TileBanditConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    learner: LearnerConfig = field(default_factory=GDIConfig)
    optimizer: OptimizerConfig = field(default_factory=AdamWConfig)
    data: DataConfig = field(default_factory=ExactReplayConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    run: RunConfig = field(default_factory=RunConfig)

    @property
    def planned_updates(self) -> int:
        """Number of learner updates of the whole run, except for the few that resets add."""
        return self.data.planned_updates(self.steps)


SECTIONS = tuple(f.name for f in fields(Config) if f.name not in ("preset", "scale", "seed", "steps"))


def differences(old: Config, new: Config) -> Iterator[tuple[str, Any, Any]]:
    """Yield (dotted field, old value, new value) of every field that differs.

    Another kind of section is one difference.
    """

    def walk(a: Any, b: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
        for f in fields(a):
            if not f.compare:
                continue
            left, right = getattr(a, f.name), getattr(b, f.name)
            if is_dataclass(left) and type(left) is type(right):
                yield from walk(left, right, f"{path}{f.name}.")
            elif is_dataclass(left):
                yield f"{path}{f.name}", kind_of(left), kind_of(right)
            elif left != right:
                yield f"{path}{f.name}", left, right

    yield from walk(old, new, "")


def kind_of(section: Any) -> str:
    """Return the name of a section's kind: one word for ours, ``module:Class`` for a user's own."""
    cls = type(section)
    if cls.__module__.partition(".")[0] == "gdi":
        return str(cls.kind)
    return f"{importable_module(cls)}:{cls.__qualname__}"
