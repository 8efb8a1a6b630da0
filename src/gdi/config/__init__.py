"""The configuration of a run: one frozen dataclass per section.

Field names contain their unit, and field docstrings name their row in the paper's tables. "Table H" is the paper's
table of hyperparameters (tab:fixed_model_hyperparameters_atari), and the quoted words are the name of the row. The
defaults are the paper's values, and presets (``gdi.presets``) are small differences from them. Each section checks its
own values. This package does not import torch.
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
