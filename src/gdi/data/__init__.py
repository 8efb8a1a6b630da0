"""The replay (X), which schedules the training of acted steps, and the store of their arrays, without torch."""

from gdi.data.base import Added, Draws, Origin, Replay, SavedFiles, collector_state, join_draws
from gdi.data.factory import make_replay, make_store
from gdi.data.store import Store, WindowStore

__all__ = [
    "Added",
    "Draws",
    "Origin",
    "Replay",
    "SavedFiles",
    "Store",
    "WindowStore",
    "collector_state",
    "join_draws",
    "make_replay",
    "make_store",
]
