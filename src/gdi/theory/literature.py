"""The algorithms that the paper classifies, as it describes them, and as published if that differs."""

from __future__ import annotations

from dataclasses import dataclass

from gdi.theory.taxonomy import (
    Algorithm,
    Axis,
    Point,
    bandit,
    by_coordinate,
    exploit_within_members,
    identity,
    point_mass,
    shared,
    uniform,
    weighted_archive,
)

# The paper's classes (section "Systematization of GDI" and tab:ablation_setting), which ``classify`` never sees.
PAPER_CLASS = {
    "DQN": "GDI-I^0 w/o E",
    "Rainbow": "GDI-I^0 w/o E",
    "PPO": "GDI-I^0 w/o E",
    "IMPALA": "GDI-I^0 w/o E",
    "Ape-X": "GDI-I^1 w/o E",
    "R2D2": "GDI-I^1 w/o E",
    "LASER": "GDI-H^1 w/o E",
    "PBT (n = 2)": "GDI-H^3",
    "NGU": "GDI-I^2",
    "Agent57": "GDI-I^2",
    "Go-Explore": "GDI-H^1",
    "gdi-i3": "GDI-I^3",
    "gdi-h3": "GDI-H^3",
    "fixed": "GDI-I^0 w/o E",
    "random": "GDI-I^3 w/o E",
    "boltzmann": "GDI-I^1",
    "epsilon-greedy": "GDI-I^1",
}


@dataclass(frozen=True)
class Deviation:
    """An algorithm as published, if the paper describes it differently, and why that matters."""

    published: Algorithm
    reason: str


def _single(name: str) -> Algorithm:
    words = ("one point", "one θ", "point", "identity")
    return Algorithm(name, (Axis("lambda", (0.0,)),), shared, point_mass, identity, words)


def _many_epsilons(name: str, actors: int = 256) -> Algorithm:
    """Describe actors with fixed ε_l = 0.4^(1 + 7 l/(L-1)), one per actor."""
    values = tuple(0.4 ** (1 + 7 * actor / (actors - 1)) for actor in range(actors))
    words = (f"{actors} values of ε", "one θ", "uniform", "identity")
    return Algorithm(name, (Axis("epsilon", values),), shared, uniform, identity, words)


def laser(learners: int = 4) -> Algorithm:
    axis = Axis("learner", tuple(float(i) for i in range(learners)))
    words = ("K learners", "θ per learner", "uniform", "identity")
    return Algorithm("LASER", (axis,), by_coordinate(0), uniform, identity, words)


def pbt(searched: int, members: int = 4) -> Algorithm:
    """Describe PBT over n hyperparameters: GDI-H^(n+1), because the population index is one more axis."""
    axes = tuple(Axis(f"h{i}", (0.1, 1.0, 10.0)) for i in range(searched))
    member = Axis("member", tuple(float(i) for i in range(members)))
    words = ("n hyperparameters x K members", "θ per member", "uniform", "per-member search")
    families, operator_e = by_coordinate(searched), exploit_within_members(members)
    return Algorithm(f"PBT (n = {searched})", (*axes, member), families, uniform, operator_e, words)


def _beta_gamma(name: str) -> Algorithm:
    """Describe NGU and Agent57 as the paper does: a product of β and γ, one θ, a UCB bandit."""
    axes = (Axis("beta", (0.0, 0.1, 0.2, 0.3)), Axis("gamma", (0.99, 0.995, 0.997)))
    return Algorithm(name, axes, shared, uniform, bandit, ("β x γ", "one θ", "uniform", "UCB bandit"))


def go_explore() -> Algorithm:
    """Describe Go-Explore: Λ = {τ}, the time to switch from exploring to robustifying.

    The index decides which model acts.
    """

    def families(point: Point) -> frozenset[str]:
        return frozenset({"theta_explore" if point[0] > 0 else "theta_robustify"})

    words = ("switching time τ", "θe, then θr", "uniform", "weighted search")
    return Algorithm("Go-Explore", (Axis("tau", (0.0, 1.0, 2.0)),), families, uniform, weighted_archive, words)


LITERATURE: tuple[Algorithm, ...] = (
    *(_single(name) for name in ("DQN", "Rainbow", "PPO", "IMPALA")),
    *(_many_epsilons(name) for name in ("Ape-X", "R2D2")),
    laser(),
    pbt(2),
    *(_beta_gamma(name) for name in ("NGU", "Agent57")),
    go_explore(),
)

_PAIRS = Axis("j", tuple(float(j) for j in range(32)))


def ngu_as_published() -> Algorithm:
    words = ("32 pairs (β, γ)", "one θ", "uniform", "identity")
    return Algorithm("NGU", (_PAIRS,), shared, uniform, identity, words)


def agent57_as_published() -> Algorithm:
    def families(point: Point) -> frozenset[str]:
        # Agent57 uses Q = Q(θ^e) + β_j Q(θ^i), and β_0 = 0.
        return frozenset({"theta_e"}) if point[0] == 0 else frozenset({"theta_e", "theta_i"})

    words = ("32 pairs (β, γ)", "θe, and θi if β > 0", "uniform", "UCB bandit")
    return Algorithm("Agent57", (_PAIRS,), families, uniform, bandit, words)


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        ngu_as_published(),
        "NGU has no bandit, and each actor keeps its pair (β_j, γ_j). E is therefore the identity. The bandit came "
        "with Agent57. One index j ties each pair, so the pairs are one axis, not the product of two.",
    ),
    Deviation(
        agent57_as_published(),
        "the bandit's arms are the tied pairs j, which are one axis. The intrinsic network θi has no weight at "
        "β_0 = 0. The interpretation that makes GDI-H^3 heterogeneous therefore makes Agent57 heterogeneous as well.",
    ),
)
