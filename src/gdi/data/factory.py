"""Construction of the replay that a config names."""

from __future__ import annotations

import numpy as np

from gdi.config import Config
from gdi.data.base import Replay
from gdi.data.exact import ExactReplay
from gdi.seeds import child_seed


def make_replay(config: Config) -> Replay:
    return ExactReplay(config.data, np.random.default_rng(child_seed(config.seed, "collector")))
