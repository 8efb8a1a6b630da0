"""X: which acted sequences are trained when (numbers only), and where their arrays are kept. Needs no torch."""

from gdi.data.base import Draws, Replay, collector_state, join_draws, load_collector_state
from gdi.data.factory import make_replay
from gdi.data.store import WindowStore

__all__ = ["Draws", "Replay", "WindowStore", "collector_state", "join_draws", "load_collector_state", "make_replay"]
