"""The search for counterexamples, from small to large.

A search visits problems in order of size (fewest points first, then the coarsest numbers) and stops at the first
failure. The result is therefore the smallest in its family. No example is stored, so a broken search finds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gdi.theory.mdp import FiniteMDP, random_mdp
from gdi.theory.measures import Array, Bools
from gdi.theory.policies import Indices

# A smaller failure is not reported. This margin is far above rounding errors.
CLEAR_MARGIN = 1e-3


@dataclass(frozen=True)
class Counterexample:
    """A failure of ``left >= right``; ``rate`` is the share of random ``instances`` on which it fails."""

    label: str
    dropped: str
    claim: str
    left: float
    right: float
    example: dict[str, Any] = field(default_factory=dict)
    searched: int = 0
    rate: float = 0.0
    instances: int = 0

    @property
    def margin(self) -> float:
        return self.left - self.right


Search = Callable[[np.random.Generator, int], Counterexample]


class NotFoundError(Exception):
    """A search that ended without a counterexample."""


def first_failure(candidates: Iterator[Counterexample]) -> Counterexample:
    """Return the first candidate that fails clearly, with the number of candidates examined."""
    for count, candidate in enumerate(candidates, start=1):
        if candidate.margin < -CLEAR_MARGIN:
            return replace(candidate, searched=count)
    raise NotFoundError("the search ended without a counterexample")


def with_rate(found: Counterexample, failures: Bools) -> Counterexample:
    """Add how often the same claim fails on random instances."""
    return replace(found, rate=float(np.mean(failures)), instances=int(np.size(failures)))


def simplices(points: int, parts: int) -> Iterator[Array]:
    """Yield all probability vectors whose entries are positive multiples of 1/parts."""
    for cut in product(range(1, parts), repeat=points - 1):
        rest = parts - sum(cut)
        if rest > 0:
            yield np.array([*cut, rest], float) / parts


def to_plain(values: ArrayLike) -> Any:
    """Convert arrays to short lists, for printing and for JSON."""
    return np.round(np.asarray(values, float), 6).tolist()


def two_armed(u: tuple[float, ...]) -> tuple[FiniteMDP, Indices]:
    """Return the smallest MDP with something to learn: one state, two actions paying 0 and 1.

    The indices are Boltzmann indices.
    """
    mdp = FiniteMDP(np.ones((1, 2, 1)), np.array([[0.0, 1.0]]), np.asarray(0.0), np.ones(1))
    return mdp, Indices.temperatures(*u)


def shared_agents(
    rng: np.random.Generator, trials: int, states: int = 3, actions: int = 2, indices: int = 4
) -> tuple[FiniteMDP, Array, Indices, Array]:
    """Draw random MDPs, shared logits, soft ε-greedy indices and index weights."""
    mdp = random_mdp(rng, trials, states, actions)
    theta = rng.standard_normal((trials, states, 1, actions))
    index = Indices(*(rng.uniform(0, top, (trials, indices)) for top in (5.0, 5.0, 1.0)))
    return mdp, theta, index, rng.dirichlet(np.ones(indices), trials)
