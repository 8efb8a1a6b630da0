"""Vectorized environments behind one small interface."""

from gdi.envs.base import EnvSpec, VectorEnv
from gdi.envs.registry import make_env

__all__ = ["EnvSpec", "VectorEnv", "make_env"]
