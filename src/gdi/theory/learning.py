r"""Algorithm 1 (alg:GDI) run to the end on a tabular MDP from exact gradients: no sampling, so no noise to
hide behind.

One corridor, three runs each of 600 iterations, same T, same start. A small reward (the *lure*) waits two
steps to the left, a large one six steps to the right; the policy starts out leaning left. Λ holds three
degrees of exploration.

=========  ========================  =====================================
========================================= setting    what E maximises          assumptions
       outcome
=========  ========================  =====================================
========================================= helps      the return J              asp:2, asp:3 hold at every θ
       E explores, then exploits: it wins clipped    J of rewards clipped to 1  asp:3 violated
               E never explores: it loses to no E
trap       the return J, bigger lure  asp:2, asp:3 hold at every θ           E exploits the lure at once: it
loses
=========  ========================  =====================================
=========================================

The third line is no contradiction. Theorem 1 compares two *targets at one θ*; it says nothing of the θ
reached later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gdi.theory.mdp import FiniteMDP
from gdi.theory.measures import Array, co_monotone, mean, mean_gain
from gdi.theory.operators import identity, improve, improve_naturally, reweight
from gdi.theory.policies import Indices, returns


def corridor(
    length: int = 8, start: int = 2, lure: float = 1.0, prize: float = 5.0, discount: float = 0.95
) -> FiniteMDP:
    """Cells 0..length-1; left out of cell 0 pays ``lure`` and ends, right out of the last cell pays ``prize``
    and ends."""
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
    """A learning problem: T maximises the return of ``mdp``, E that of ``seen_by_e`` (the same, unless asp:3
    is to break)."""

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
    r"""One run. Per iteration: the target :math:`\mathcal{L}_\mathcal{T}(\mathcal{P}^{(t)}, \theta^{(t)})`,
    the return of the best index and :math:`\mathcal{P}^{(t)}`; then whether asp:3 held there, and Theorem 1's
    gain with θ frozen and with θ moving as printed."""

    target: Array
    best: Array
    weights: Array
    assumption_3: Array
    frozen_gain: Array
    moving_gain: Array


OperatorE = Callable[[Array, Array, float], Array]


def iterate(setting: Setting, operators_e: tuple[OperatorE, ...]) -> tuple[Run, ...]:
    r"""alg:GDI, once for each E, side by side: :math:`\theta^{(t+1)} = \mathcal{T}(\theta^{(t)}, \mathcal{P}^{(t)})`
    and :math:`\mathcal{P}^{(t+1)} = \mathcal{E}(\mathcal{P}^{(t)}, \theta^{(t)})`. Arrays are ``[E, ...]``."""
    count = len(operators_e), setting.index.u1.shape[-1]
    theta = np.broadcast_to(setting.theta, (count[0], *setting.theta.shape))
    weights = np.full(count, 1.0 / count[1])
    operator_t = improve_naturally if setting.natural else improve
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
    theta[:, 0, 0] = 1.5  # leans left, towards the lure
    seen = mdp.with_reward(np.clip(mdp.reward, -1.0, 1.0)) if clipped else mdp
    return Setting(name, mdp, seen, Indices.explorers(0.0, 0.5, 0.9), theta)


def helps() -> Setting:
    """Exploring pays at the start, exploiting later; E follows."""
    return _setting("helps", lure=1.0, clipped=False)


def clipped() -> Setting:
    """As ``helps``, but E sees rewards clipped to [-1, 1], so the far prize is worth no more than the lure:
    asp:3 breaks."""
    return _setting("clipped", lure=1.0, clipped=True)


def trap() -> Setting:
    """As ``helps`` with a lure of 1.5: the greedy index returns most at the start, and E starves the one that
    would learn."""
    return _setting("trap", lure=1.5, clipped=False)


SETTINGS = (helps, clipped, trap)


@dataclass(frozen=True)
class Comparison:
    """With and without E on one setting."""

    setting: Setting
    with_e: Run
    without_e: Run

    def advantage(self) -> tuple[float, float]:
        """How much larger with E, averaged over the run: the target, and the return of the best index."""
        return (
            float(np.mean(self.with_e.target - self.without_e.target)),
            float(np.mean(self.with_e.best - self.without_e.best)),
        )


def compare(setting: Setting) -> Comparison:
    with_e, without_e = iterate(setting, (reweight, identity))
    return Comparison(setting, with_e, without_e)
