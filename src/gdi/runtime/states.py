"""A sample of the states of each third of a run, in ``states/stage-*.npz``.

Each file has the arrays ``obs``, ``value`` (V when it was seen), ``index`` (λ), ``episode`` (a name of three numbers)
and ``episode_return``, which is NaN if the episode has not ended yet. The array ``steps`` holds the first and last
training step of the stage so far.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from gdi.types import Array, SeenStates, State

STATES = "states"
STAGES = 3
MAX_FILE_BYTES = 1_000_000
ROWS = ("obs", "value", "index", "key", "episode")
FAST, SMALL = 1, 6  # levels of compression
SAVED = ("obs", "value", "index", "episode", "episode_return")


class Reservoir:
    """The states with the smallest keys so far: a uniform sample, without replacement, of all that were offered."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.rows: dict[str, Array] = {}  # sorted by key
        self.steps = (0, 0)  # the first and last step at which states were offered
        self.is_changed = False  # since it was written

    def add(self, steps: int, seen: SeenStates) -> None:
        """Offer the states of a window that ended at ``steps``."""
        self.steps = (self.steps[0] or steps, steps)
        self.is_changed = True
        new = {name: getattr(seen, name) for name in ROWS} | {"episode_return": np.full(len(seen.key), np.nan)}
        if not len(seen.key):
            return
        if self.rows:
            new = {name: np.concatenate([self.rows[name], array]) for name, array in new.items()}
        kept = np.argsort(new["key"], kind="stable")[: self._size]
        self.rows = {name: array[kept] for name, array in new.items()}

    def end(self, ended: Array, returns: Array) -> None:
        """Fill in the returns of episodes that ended."""
        if not self.rows or not len(ended):
            return
        waiting = np.flatnonzero(np.isnan(self.rows["episode_return"]))
        same = (self.rows["episode"][waiting, None] == ended[None]).all(-1)  # [waiting, ended]
        row, which = np.nonzero(same)
        self.rows["episode_return"][waiting[row]] = returns[which]
        self.is_changed = self.is_changed or len(row) > 0

    def state_dict(self) -> State:
        return {"rows": dict(self.rows), "steps": list(self.steps)}

    def load_state_dict(self, state: State) -> None:
        self.rows = {name: np.array(array) for name, array in state["rows"].items()}
        self.steps = (int(state["steps"][0]), int(state["steps"][1]))
        self.is_changed = True


class StateRecorder:
    """One sample for each stage of a run. The files are written with each checkpoint."""

    def __init__(self, folder: Path, per_stage: int, total_steps: int) -> None:
        self._folder, self._total_steps = folder / STATES, total_steps
        self._stages = [Reservoir(per_stage) for _ in range(STAGES)]

    def add(self, steps: int, seen: SeenStates | None) -> None:
        """Take the picked states of a window that ended at ``steps``, and the returns of ended episodes."""
        if seen is None:
            return
        self._stages[min(STAGES - 1, STAGES * (steps - 1) // self._total_steps)].add(steps, seen)
        for stage in self._stages:
            stage.end(seen.ended, seen.ended_return)

    def write(self) -> None:
        """Write the file of each stage that changed or whose file is gone; each is replaced at once."""
        for number, stage in enumerate(self._stages, 1):
            path = self._folder / f"stage-{number}.npz"
            if stage.rows and (stage.is_changed or not path.exists()):
                self._folder.mkdir(exist_ok=True)
                part = self._folder / f".stage-{number}.part"
                part.write_bytes(packed(stage))
                part.rename(path)
                stage.is_changed = False

    def state_dict(self) -> State:
        return {str(number): stage.state_dict() for number, stage in enumerate(self._stages)}

    def load_state_dict(self, state: State) -> None:
        for number, stage in enumerate(self._stages):
            stage.load_state_dict(state[str(number)])


def packed(stage: Reservoir) -> bytes:
    """Return the compressed file of a stage: smaller images, or else fewer states, if it were above 1 MB."""
    rows = {name: stage.rows[name] for name in SAVED}
    while True:
        file = io.BytesIO()
        # Rows that fit anyway are compressed fast.
        level = FAST if sum(array.nbytes for array in rows.values()) <= MAX_FILE_BYTES else SMALL
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name, array in {"steps": np.array(stage.steps), **rows}.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        if file.tell() <= MAX_FILE_BYTES:
            return file.getvalue()
        obs = rows["obs"]
        if obs.ndim >= 3 and min(obs.shape[1:3]) >= 16:
            rows["obs"] = halved(obs)
        else:
            rows = {name: array[::2] for name, array in rows.items()}


def halved(images: Array) -> Array:
    """Return images of half the height and width, [n, H, W, ...] -> [n, H/2, W/2, ...], each pixel a mean of four."""
    height, width = (size // 2 * 2 for size in images.shape[1:3])
    corners = [images[:, i:height:2, j:width:2].astype(np.float32) for i in (0, 1) for j in (0, 1)]
    mean = sum(corners[1:], corners[0]) / 4
    return (mean if images.dtype.kind == "f" else np.rint(mean)).astype(images.dtype)
