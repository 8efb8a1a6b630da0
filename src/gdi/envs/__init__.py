"""Environments, vectorised, all behind one small protocol."""

from gdi.envs.base import EnvSpec, VectorEnv
from gdi.envs.registry import make_env

__all__ = ["EnvSpec", "VectorEnv", "make_env"]
