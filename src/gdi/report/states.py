"""The states that two runs kept, and one number that says how far they overlap.

t-SNE alone proves nothing, because it draws clusters in noise as well. The number is the error of a classifier that
guesses a state's agent from its nearest neighbors. It is 1/2 if both agents visit the same states equally often, and 0
if they visit none in common.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gdi.errors import UserError
from gdi.runtime.states import STAGES, STATES, halved
from gdi.types import Array

NEIGHBORS = 5
RESAMPLES = 1000
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class KeptStates:
    """The states of one run; all arrays have one row per state."""

    obs: Array  # [n, *frame]
    stage: Array  # [n] 0, 1, 2
    value: Array
    index: Array  # [n, components of λ]
    episode: Array  # [n] number of the episode
    episode_return: Array  # NaN if the episode had not ended

    def __len__(self) -> int:
        return len(self.stage)


@dataclass(frozen=True)
class Overlap:
    """The error of the nearest-neighbor classifier with its 95 % interval."""

    error: float
    low: float
    high: float

    @property
    def text(self) -> str:
        return f"{self.error:.3f} [{self.low:.3f}, {self.high:.3f}]"


def read_states(run: Path) -> KeptStates:
    """Return the states that a run kept, or raise UserError if a stage is missing."""
    stages = [_read_stage(run / STATES / f"stage-{number}.npz") for number in range(1, STAGES + 1)]
    stages = _of_one_size(stages)
    rows = {name: np.concatenate([stage[name] for stage in stages]) for name in stages[0]}
    number = np.repeat(np.arange(STAGES), [len(stage["value"]) for stage in stages])
    _, episode = np.unique(rows["episode"], axis=0, return_inverse=True)
    return KeptStates(rows["obs"], number, rows["value"], rows["index"], episode.ravel(), rows["episode_return"])


def _read_stage(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in ("obs", "value", "index", "episode", "episode_return")}
    except FileNotFoundError:
        raise UserError(
            f"{path} does not exist: let the run reach its last third, and train with --run.states-per-stage above 0."
        ) from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None


def _of_one_size(stages: list[dict[str, Array]]) -> list[dict[str, Array]]:
    smallest = min((stage["obs"].shape[1:3] for stage in stages), key=lambda size: size[0])
    return [{**stage, "obs": _shrunk(stage["obs"], smallest[0])} for stage in stages]


def _shrunk(obs: Array, height: int) -> Array:
    while obs.ndim >= 3 and obs.shape[1] > height:
        obs = halved(obs)
    return obs


def same_frames(a: KeptStates, b: KeptStates) -> tuple[Array, Array]:
    """Return both runs' observations in one shape, or raise UserError if they are of different kinds."""
    height = min(a.obs.shape[1], b.obs.shape[1])
    one, two = _shrunk(a.obs, height), _shrunk(b.obs, height)
    if one.shape[1:] != two.shape[1:] or one.dtype != two.dtype:
        raise UserError(
            f"the runs saw different things, {_shape(a.obs)} and {_shape(b.obs)}: compare two runs of one environment."
        )
    return one, two


def _shape(obs: Array) -> str:
    return f"{'×'.join(map(str, obs.shape[1:]))} {obs.dtype}"


def features(obs: Array) -> Array:
    """Return one row of numbers per observation; the columns of vectors have one spread."""
    rows = obs.reshape(len(obs), -1).astype(np.float32)
    if obs.ndim >= 3:
        return rows / 255 if obs.dtype == np.uint8 else rows
    spread = rows.std(0)
    return rows / np.where(spread > 0, spread, 1)


def overlap(points: Array, agent: Array, episode: Array, rng: np.random.Generator) -> Overlap:
    """Return the error of the classifier on ``points`` [n, d], where ``agent`` is 0 or 1.

    States of one episode resemble each other, so a neighbor counts only if it is from another episode. For the same
    reason the interval resamples whole episodes. Ties between neighbors are broken at random.
    """
    order = rng.permutation(len(points))
    wrong = np.empty(len(points))
    wrong[order] = _mistakes(points[order], agent[order], episode[order])
    return Overlap(float(_balanced(wrong, agent)), *_interval(wrong, agent, episode, rng))


def _mistakes(points: Array, agent: Array, episode: Array) -> Array:
    points = points.astype(np.float32)
    square = (points**2).sum(1)
    share = np.array([np.mean(agent == 0), np.mean(agent == 1)])
    wrong = np.empty(len(points))
    for begin in range(0, len(points), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        distance = square - 2 * points[rows] @ points.T
        distance[episode[rows, None] == episode] = np.inf
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBORS]
        votes = np.stack([(agent[nearest] == one).sum(1) / share[one] for one in (0, 1)], 1)
        wrong[rows] = votes.argmax(1) != agent[rows]
    return wrong


def _balanced(wrong: Array, agent: Array) -> float:
    """Return the mean of both agents' errors, so that an agent with more states does not count more."""
    return float(np.mean([wrong[agent == one].mean() for one in (0, 1)]))


def _interval(wrong: Array, agent: Array, episode: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % bootstrap interval over whole episodes."""
    errors = np.zeros(RESAMPLES)
    for one in (0, 1):
        of_agent = agent == one
        _, which = np.unique(episode[of_agent], return_inverse=True)
        sums, counts = np.bincount(which, wrong[of_agent]), np.bincount(which)
        drawn = rng.integers(len(sums), size=(RESAMPLES, len(sums)))
        errors += sums[drawn].sum(1) / counts[drawn].sum(1) / 2
    low, high = np.quantile(errors, [0.025, 0.975])
    return float(low), float(high)
