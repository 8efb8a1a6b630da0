"""Frozen configuration, the paper's tuple: every field with its unit in its name and its row of the tables beside it.

"Table H" is the paper's table of hyperparameters (tab:fixed_model_hyperparameters_atari); the quoted words are the
row's name. The defaults are the paper's values; presets (``gdi.presets``) are small differences from them. Each section
is one frozen dataclass that tells its own problems. Needs no torch.
"""

from gdi.config.controller import (
    ControllerConfig,
    FixedConfig,
    MultiplicativeWeightsConfig,
    TileBanditConfig,
    UniformConfig,
)
from gdi.config.data import DataConfig, ExactReplayConfig
from gdi.config.env import EnvConfig
from gdi.config.index_space import AxisConfig, GDISpace, axes_of
from gdi.config.json import KIND_SECTIONS, config_from_json, config_to_json, kinds, own_classes
from gdi.config.learner import GDIConfig, LearnerConfig
from gdi.config.network import NetworkConfig
from gdi.config.optimizer import OptimizerConfig
from gdi.config.run import EvaluationConfig, RunConfig
from gdi.config.upgrade import MOVED
from gdi.config.validate import check_types, validate
from gdi.config.whole import SECTIONS, Config, differences, kind_of

__all__ = [
    "KIND_SECTIONS",
    "MOVED",
    "SECTIONS",
    "AxisConfig",
    "Config",
    "ControllerConfig",
    "DataConfig",
    "EnvConfig",
    "EvaluationConfig",
    "ExactReplayConfig",
    "FixedConfig",
    "GDIConfig",
    "GDISpace",
    "LearnerConfig",
    "MultiplicativeWeightsConfig",
    "NetworkConfig",
    "OptimizerConfig",
    "RunConfig",
    "TileBanditConfig",
    "UniformConfig",
    "axes_of",
    "check_types",
    "config_from_json",
    "config_to_json",
    "differences",
    "kind_of",
    "kinds",
    "own_classes",
    "validate",
]
