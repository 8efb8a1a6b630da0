r"""Algorithm 1 (alg:GDI) as complete runs on a tabular MDP, with exact gradients and no noise.

The MDP is a corridor. A small reward (the *lure*) is two steps to the left, a large one six steps to the right. The
policy starts with a preference for left, and Λ holds three degrees of exploration. Each setting runs 600 iterations
with the same T and the same start:

- ``helps``: E maximizes the return J. asp:2 and asp:3 hold at every θ. E explores, then exploits, and wins.
- ``clipped``: E maximizes J of rewards clipped to 1, which violates asp:3. E never explores and loses to no E.
- ``trap``: E maximizes the return J with a bigger lure. asp:2 and asp:3 hold at every θ. E exploits the lure at once
  and loses.

The third setting is not a contradiction. Theorem 1 compares two *targets at one θ* and says nothing about later θ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gdi.theory.mdp import FiniteMDP
from gdi.theory.measures import Array, co_monotone, mean, mean_gain
from gdi.theory.operators import identity, improve, improve_natural, reweight
from gdi.theory.policies import Indices, returns


def corridor(
    length: int = 8, start: int = 2, lure: float = 1.0, prize: float = 5.0, discount: float = 0.95
) -> FiniteMDP:
    """Return a corridor with cells 0..length-1.

    Moving left out of cell 0 pays ``lure`` and ends. Moving right out of the last cell pays ``prize`` and ends.
    """
    end = length
    transition, reward = np.zeros((length + 1, 2, length + 1)), np.zeros((length + 1, 2))
    for cell in range(length):
        transition[cell, 0, cell - 1 if cell else end] = 1.0
        transition[cell, 1, cell + 1] = 1.0
    transition[end, :, end] = 1.0
    reward[0, 0], reward[length - 1, 1] = lure, prize
    begin = np.zeros(length + 1)
    begin[start] = 1.0
    return FiniteMDP(transition, reward, np.asarray(discount), begin)


@dataclass(frozen=True)
class Setting:
    """A learning problem: T maximizes the return of ``mdp``, and E that of ``seen_by_e``.

    The two MDPs are the same unless asp:3 is meant to break.
    """

    name: str
    mdp: FiniteMDP
    seen_by_e: FiniteMDP
    index: Indices
    theta: Array
    eta: float = 4.0
    step: float = 0.5
    iterations: int = 600
    natural: bool = False


@dataclass(frozen=True)
class Run:
    r"""One run, with values per iteration.

    The values are the target :math:`\mathcal{L}_\mathcal{T}(\mathcal{P}^{(t)}, \theta^{(t)})`, the return of the best
    index, :math:`\mathcal{P}^{(t)}`, whether asp:3 held, and Theorem 1's gain. The gain is given with θ frozen and with
    θ moving as printed.
    """

    target: Array
    best: Array
    weights: Array
    assumption_3: Array
    frozen_gain: Array
    moving_gain: Array


OperatorE = Callable[[Array, Array, float], Array]


def iterate(setting: Setting, operators_e: tuple[OperatorE, ...]) -> tuple[Run, ...]:
    r"""Run alg:GDI once for each E; arrays are ``[E, ...]``.

    The updates are :math:`\theta^{(t+1)} = \mathcal{T}(\theta^{(t)}, \mathcal{P}^{(t)})` and :math:`\mathcal{P}^{(t+1)}
    = \mathcal{E}(\mathcal{P}^{(t)}, \theta^{(t)})`.
    """
    count = len(operators_e), setting.index.u1.shape[-1]
    theta = np.broadcast_to(setting.theta, (count[0], *setting.theta.shape))
    weights = np.full(count, 1.0 / count[1])
    operator_t = improve_natural if setting.natural else improve
    values = returns(setting.mdp, theta, setting.index)
    history: list[tuple[Array, ...]] = []
    for _ in range(setting.iterations + 1):
        honest = setting.seen_by_e is setting.mdp
        seen = values if honest else returns(setting.seen_by_e, theta, setting.index)
        rows = zip(operators_e, weights, seen, strict=True)
        following = np.stack([operator_e(row, shown, setting.eta) for operator_e, row, shown in rows])
        theta = operator_t(setting.mdp, theta, setting.index, weights, setting.step)
        moved = returns(setting.mdp, theta, setting.index)
        history.append(
            (
                mean(weights, values),
                values.max(axis=-1),
                weights,
                co_monotone(values, seen).astype(float),
                mean_gain(weights, following, values),
                mean_gain(weights, following, moved),
            )
        )
        weights, values = following, moved
    columns = [np.stack(column, axis=1) for column in zip(*history, strict=True)]
    return tuple(Run(*(column[e] for column in columns)) for e in range(count[0]))


def _setting(name: str, lure: float, clipped: bool) -> Setting:
    mdp = corridor(lure=lure)
    theta = np.zeros((9, 1, 2))
    theta[:, 0, 0] = 1.5  # prefers left, toward the lure
    seen = mdp.with_reward(np.clip(mdp.reward, -1.0, 1.0)) if clipped else mdp
    return Setting(name, mdp, seen, Indices.explorers(0.0, 0.5, 0.9), theta)


def helps() -> Setting:
    """Return the setting where exploring pays at the start and exploiting later, and E follows."""
    return _setting("helps", lure=1.0, clipped=False)


def clipped() -> Setting:
    """Return ``helps`` with the rewards that E sees clipped to [-1, 1].

    The far prize is then worth no more than the lure, so asp:3 breaks.
    """
    return _setting("clipped", lure=1.0, clipped=True)


def trap() -> Setting:
    """Return ``helps`` with a lure of 1.5.

    The greedy index returns most at the start, and E starves the one that would learn.
    """
    return _setting("trap", lure=1.5, clipped=False)


SETTINGS = (helps, clipped, trap)


@dataclass(frozen=True)
class Comparison:
    """The runs with and without E on one setting."""

    setting: Setting
    with_e: Run
    without_e: Run

    def advantage(self) -> tuple[float, float]:
        """Return how much E adds to the target and to the return of the best index, averaged over the run."""
        return (
            float(np.mean(self.with_e.target - self.without_e.target)),
            float(np.mean(self.with_e.best - self.without_e.best)),
        )


def compare(setting: Setting) -> Comparison:
    with_e, without_e = iterate(setting, (reweight, identity))
    return Comparison(setting, with_e, without_e)
