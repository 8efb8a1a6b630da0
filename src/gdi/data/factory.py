"""Builds the replay that a config asks for, and the store behind it: one case per kind."""

from __future__ import annotations

import numpy as np

from gdi.config import Config, SampledReplayConfig
from gdi.data.base import Replay
from gdi.data.exact import ExactReplay
from gdi.data.sampled import SampledReplay, make_layout
from gdi.data.slots import SlotStore
from gdi.data.store import Store, WindowStore
from gdi.seeds import child_seed


def make_replay(config: Config, streams: int = 1) -> Replay:
    """Return a replay for windows from so many streams, which share the environments."""
    rng = np.random.default_rng(child_seed(config.seed, "collector"))
    if isinstance(config.data, SampledReplayConfig):
        return SampledReplay(config.data, make_layout(config.data, config.env.num_envs // streams, streams), rng)
    return ExactReplay(config.data, rng)


def make_store(config: Config, streams: int = 1) -> Store:
    if isinstance(config.data, SampledReplayConfig):
        layout = make_layout(config.data, config.env.num_envs // streams, streams)
        return SlotStore(layout, config.data.slice_steps)
    return WindowStore(config.data.slice_steps)
