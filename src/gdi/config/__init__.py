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
    ScheduleConfig,
    TileBanditConfig,
    UniformConfig,
)
from gdi.config.data import DataConfig, ExactReplayConfig, SampledReplayConfig
from gdi.config.dqn import DQNConfig
from gdi.config.env import EnvConfig
from gdi.config.impala import IMPALAConfig
from gdi.config.imports import add_to_path
from gdi.config.index_space import AxisConfig, EpsilonSpace, GDISpace, SoftmaxSpace, SpaceConfig, axes_of
from gdi.config.json import KIND_SECTIONS, config_from_json, config_to_json, kinds, own_classes, own_modules
from gdi.config.learner import GDIConfig, LearnerConfig
from gdi.config.network import NetworkConfig
from gdi.config.optimizer import AdamWConfig, OptimizerConfig, RMSPropConfig, planned_warmup_updates
from gdi.config.ppo import PPOConfig
from gdi.config.run import EvaluationConfig, RunConfig
from gdi.config.traits import controller_traits, learner_traits, space_traits
from gdi.config.trust import NotTrustedError, Trust, module_of
from gdi.config.upgrade import MOVED
from gdi.config.validate import check_new, check_types, validate
from gdi.config.whole import SECTIONS, Config, differences, kind_of

__all__ = [
    "KIND_SECTIONS",
    "MOVED",
    "SECTIONS",
    "AdamWConfig",
    "AxisConfig",
    "Config",
    "ControllerConfig",
    "DQNConfig",
    "DataConfig",
    "EnvConfig",
    "EpsilonSpace",
    "EvaluationConfig",
    "ExactReplayConfig",
    "FixedConfig",
    "GDIConfig",
    "GDISpace",
    "IMPALAConfig",
    "LearnerConfig",
    "MultiplicativeWeightsConfig",
    "NetworkConfig",
    "NotTrustedError",
    "OptimizerConfig",
    "PPOConfig",
    "RMSPropConfig",
    "RunConfig",
    "SampledReplayConfig",
    "ScheduleConfig",
    "SoftmaxSpace",
    "SpaceConfig",
    "TileBanditConfig",
    "Trust",
    "UniformConfig",
    "add_to_path",
    "axes_of",
    "check_new",
    "check_types",
    "config_from_json",
    "config_to_json",
    "controller_traits",
    "differences",
    "kind_of",
    "kinds",
    "learner_traits",
    "module_of",
    "own_classes",
    "own_modules",
    "planned_warmup_updates",
    "space_traits",
    "validate",
]
