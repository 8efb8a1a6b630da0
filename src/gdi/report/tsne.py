"""A map of the states that two runs visited, by PCA and t-SNE, as in the paper's appendix (app: tsne)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from gdi.errors import UserError, install_hint
from gdi.report.states import KeptStates, Overlap, features, overlap, same_frames
from gdi.types import Array

COMPONENTS, PERPLEXITY, SEED = 50, 30.0, 0


@dataclass(frozen=True)
class StateMap:
    """The states of two runs in the plane, those of the first run first."""

    obs: Array  # [n, *frame]
    agent: Array  # [n] 0 or 1
    stage: Array  # [n] 0, 1, 2
    place: Array  # [n, 2]
    overlaps: tuple[Overlap, ...]  # of each stage, then of all states
    components: int  # that PCA kept
    explained: float  # share of the variance in them


def map_states(a: KeptStates, b: KeptStates) -> StateMap:
    """Return the map and the overlaps of two runs. The overlaps are measured on the components, before t-SNE."""
    obs = np.concatenate(same_frames(a, b))
    agent, stage = np.repeat([0, 1], [len(a), len(b)]), np.concatenate([a.stage, b.stage])
    episode = np.concatenate([a.episode, b.episode + 1 + a.episode.max(initial=0)])
    points, explained = principal_components(features(obs))
    rng = np.random.default_rng(SEED)
    groups = [*(stage == number for number in range(3)), np.ones(len(obs), bool)]
    overlaps = tuple(overlap(points[group], agent[group], episode[group], rng) for group in groups)
    return StateMap(obs, agent, stage, plane(points), overlaps, points.shape[1], explained)


def principal_components(rows: Array) -> tuple[Array, float]:
    """Return the first components of the rows, [n, <= 50], and the share of the variance in them."""
    decomposition = _sklearn("sklearn.decomposition")
    count = min(COMPONENTS, *rows.shape)
    pca = decomposition.PCA(n_components=count, random_state=SEED)
    return pca.fit_transform(rows), float(pca.explained_variance_ratio_.sum())


def plane(points: Array) -> Array:
    """Return t-SNE's places in the plane, [n, 2]."""
    manifold = _sklearn("sklearn.manifold")
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    place: Array = manifold.TSNE(perplexity=perplexity, random_state=SEED, init="pca").fit_transform(points)
    return place


def _sklearn(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UserError(f"--tsne needs scikit-learn: {install_hint('report')}.") from None
