"""The training data (X): a replay schedules the sequences, and a store keeps their arrays.

This package does not import torch.
"""

from gdi.data.base import Draws, Replay, collector_state, join_draws, load_collector_state
from gdi.data.factory import make_replay
from gdi.data.store import WindowStore

__all__ = ["Draws", "Replay", "WindowStore", "collector_state", "join_draws", "load_collector_state", "make_replay"]
