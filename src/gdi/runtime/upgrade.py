"""Reads checkpoints of earlier formats by converting them to the current layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdi.types import Array, State

FORMAT = 2


def upgrade_state(state: State, found: int) -> State:
    """Return a checkpoint tree of format ``found`` in the current format.

    Format 1 stores λ for the L steps of a window but not for the bootstrap row. At a reset row it already stores the
    next episode's λ. It also contains an evaluation's normalized scores, which are computed on display.
    """
    if found == FORMAT:
        return state
    system, run = dict(state["system"]), dict(state["run"])
    windows = {key: {**kept, "arrays": _window(kept["arrays"])} for key, kept in system["collector"]["windows"].items()}
    system["collector"] = {**system["collector"], "windows": windows}
    if "actor" in system:
        system["actor"] = _actor(system["actor"])
    if "more_actors" in system:
        system["more_actors"] = {number: _actor(actor) for number, actor in system["more_actors"].items()}
    if run["evaluation"]:
        dropped = ("hns", "hwrns", "saber")
        run["evaluation"] = {name: value for name, value in run["evaluation"].items() if name not in dropped}
    return {"system": system, "run": run}


def _actor(actor: State) -> State:
    if "stream" not in actor:
        return actor
    stream = dict(actor["stream"])
    stream["episode_return"] = stream.pop("return")
    stream.setdefault("cut", False)
    if "last_window" in stream:
        stream["last_window"] = _window(stream["last_window"])
    return {**actor, "stream": stream}


def _window(arrays: dict[str, Any]) -> dict[str, Array]:
    index = np.asarray(arrays["index"])  # [L, B, 3]
    index = np.concatenate([index, index[-1:]])  # no λ is drawn between the last step and its bootstrap row
    # Step t is a reset if row t + 1 starts an episode. Its observation still belongs to the previous episode.
    resets = np.asarray(arrays["episode_start"])[1:]  # [L, B]
    index[1:-1] = np.where(resets[1:, :, None], index[:-2], index[1:-1])
    return {**arrays, "index": index}
