"""GDI, Generalized Data Distribution Iteration: an agent whose exploration tunes itself.

Most users need two functions: ``gdi.train(config)`` and ``gdi.load(run_dir)``. They are imported on first use.
Therefore ``import gdi.scores`` and ``import gdi.theory`` start fast and do not need torch.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gdi.agent import Agent as Agent
    from gdi.api import load as load
    from gdi.api import train as train
    from gdi.config import Config as Config
    from gdi.placement import PlacementConfig as PlacementConfig
    from gdi.presets import make_config as make_config
    from gdi.report.notebook import watch as watch

__version__ = "0.1.0"
__all__ = ["Agent", "Config", "PlacementConfig", "load", "make_config", "train", "watch"]

_HOME = {
    "Agent": "gdi.agent",
    "load": "gdi.api",
    "train": "gdi.api",
    "Config": "gdi.config",
    "PlacementConfig": "gdi.placement",
    "make_config": "gdi.presets",
    "watch": "gdi.report.notebook",
}


# Modules whose names users write in full, such as ``gdi.config.UniformConfig``.
_MODULES = ("config", "errors", "policy")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gdi.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gdi' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Return the public names, and the submodules that are imported so far."""
    modules = {name for name, value in globals().items() if isinstance(value, ModuleType) and name[0] != "_"}
    return sorted({*__all__, "__version__", *modules})
